// plain.cpp in a program that has a second cuDNN by another library, in the one scope that all
// share.
extern "C" int plainMain(int count, char** words);
extern "C" void callOther();

int main(int count, char** words) {
  callOther();
  const int status = plainMain(count, words);
  callOther();
  return status;
}
