/* Makes one call of a process to the system fail, or kills the process there. Loaded with LD_PRELOAD.

   Counted are calls that change what is on the disk below one of two folders: open for writing, write, fsync, rename,
   mkdir, truncate. The counter is shared with the parent process, which can read it when the process is dead.

   A server cannot be told so. There, the disk is full below the folder FULL_DISK while it has a file `full` in it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folders[2][PATH_MAX];
static int nth, last, error_number;
static int *counted;
static const char *full_disk;

__attribute__((constructor)) static void start(void) {
  const char *given = getenv("FULL_DISK");
  full_disk = given ? strdup(given) : NULL; /* PostgreSQL writes over its environment */
  counted = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* From now on, calls number `first` to `final` fail with `error`; error 0 kills the process instead. */
void arm(const char *one, const char *other, int first, int final, int error) {
  snprintf(folders[0], PATH_MAX, "%s", one);
  snprintf(folders[1], PATH_MAX, "%s", other);
  nth = first, last = final, error_number = error;
  __atomic_store_n(counted, 0, __ATOMIC_SEQ_CST);
}

int calls(void) { return *counted; }

static int below(const char *path) {
  for (int i = 0; i < 2; i++)
    if (*folders[i] && strncmp(path, folders[i], strlen(folders[i])) == 0) return 1;
  return 0;
}

/* Whether there is no room on the disk of a server. */
static int no_room(const char *path) {
  char mark[PATH_MAX];
  if (!full_disk || strncmp(path, full_disk, strlen(full_disk))) return 0;
  snprintf(mark, sizeof mark, "%s/full", full_disk);
  if (access(mark, F_OK)) return 0;
  errno = ENOSPC;
  return 1;
}

static int no_room_in(int file) {
  char link[64], path[PATH_MAX];
  if (!full_disk) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return no_room(path);
}

static int fails(int is_below) {
  if (!is_below) return 0;
  int number = __atomic_add_fetch(counted, 1, __ATOMIC_SEQ_CST);
  if (number < nth || number > last) return 0;
  if (!error_number) kill(getpid(), SIGKILL);
  errno = error_number;
  return 1;
}

static int of_path(int folder, const char *path) {
  char whole[PATH_MAX + 1], link[64];
  if (!*folders[0] || !path) return 0;
  if (*path == '/') return below(path);
  snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
  ssize_t length = readlink(link, whole, PATH_MAX - 1);
  if (length < 0) return 0;
  snprintf(whole + length, PATH_MAX - length, "/%s", path);
  return below(whole);
}

static int of_file(int file) {
  char link[64], path[PATH_MAX];
  if (!*folders[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
#define MODE va_list more; va_start(more, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; va_end(more);

int open(const char *path, int flags, ...) {
  MODE
  return (flags & WRITES) && fails(of_path(AT_FDCWD, path)) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE
  return (flags & WRITES) && fails(of_path(AT_FDCWD, path)) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE
  return (flags & WRITES) && fails(of_path(folder, path)) ? -1 : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE
  return (flags & WRITES) && fails(of_path(folder, path)) ? -1 : REAL(openat64)(folder, path, flags, mode);
}
ssize_t write(int file, const void *data, size_t size) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(write)(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(pwrite)(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(pwrite64)(file, data, size, at);
}
ssize_t writev(int file, const struct iovec *data, int parts) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(writev)(file, data, parts);
}
ssize_t pwritev(int file, const struct iovec *data, int parts, off_t at) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(pwritev)(file, data, parts, at);
}
ssize_t pwritev64(int file, const struct iovec *data, int parts, off64_t at) {
  return no_room_in(file) || fails(of_file(file)) ? -1 : REAL(pwritev64)(file, data, parts, at);
}
int posix_fallocate(int file, off_t at, off_t size) {
  return no_room_in(file) ? ENOSPC : REAL(posix_fallocate)(file, at, size);
}
int posix_fallocate64(int file, off64_t at, off64_t size) {
  return no_room_in(file) ? ENOSPC : REAL(posix_fallocate64)(file, at, size);
}
int fsync(int file) { return fails(of_file(file)) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails(of_file(file)) ? -1 : REAL(fdatasync)(file); }
int ftruncate(int file, off_t size) { return fails(of_file(file)) ? -1 : REAL(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return fails(of_file(file)) ? -1 : REAL(ftruncate64)(file, size); }
int rename(const char *old, const char *new) { return fails(of_path(AT_FDCWD, new)) ? -1 : REAL(rename)(old, new); }
int renameat(int from, const char *old, int to, const char *new) {
  return fails(of_path(to, new)) ? -1 : REAL(renameat)(from, old, to, new);
}
int mkdir(const char *path, mode_t mode) { return fails(of_path(AT_FDCWD, path)) ? -1 : REAL(mkdir)(path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) {
  return fails(of_path(folder, path)) ? -1 : REAL(mkdirat)(folder, path, mode);
}
