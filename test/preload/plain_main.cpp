// plain.cpp as a program.
extern "C" int plainMain(int count, char** words);

int main(int count, char** words) {
  return plainMain(count, words);
}
