// Emits a weak symbol on purpose: what the check of the kernel objects must find.
template <typename T>
T twice(T x) {
  return x + x;
}
template int twice<int>(int);
