// A shared object that is no plug-in.
extern "C" int no_plugin() {
  return 0;
}
