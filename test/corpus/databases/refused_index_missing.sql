DROP INDEX size_problem;
