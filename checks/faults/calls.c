/* Library to preload (LD_PRELOAD) into the commands. It counts their system calls on files below a folder, and makes
   one of them fail.

   All processes map a file with a `struct control` (calls.py declares the same structure). It selects the call and the
   fault, and lists the calls. Calls in other sessions and on files in other folders are neither changed nor counted.
   The library covers the calls that Python, SQLite, Arrow and zlib make through the C library. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_CALLS (1 << 16)
#define NAME_BYTES 128

enum happening { NOTHING, FAIL, SHORT, SIGNAL_BEFORE, SIGNAL_AFTER };

struct control {
    int32_t session;  /* Session whose calls count; 0 for none. */
    int32_t what;     /* Fault: `enum happening` */
    int32_t number;   /* Number of the error or signal. */
    int32_t is_all;   /* Whether all processes of the session get the signal. */
    int64_t target;   /* Number of the call with the fault, from 1. */
    int64_t count;    /* Number of calls so far. */
    char root[1024];
    char calls[MOST_CALLS][NAME_BYTES]; /* Name and file of each call. */
};

static struct control *control;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("SO2DOCS_CALLS");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (found != MAP_FAILED)
        control = found;
}

static int is_inside(const char *path)
{
    size_t size = strlen(control->root);
    return !strncmp(path, control->root, size) && (path[size] == '/' || !path[size]);
}

static int name_of(int file, char *name, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, name, size - 1);
    if (length < 0)
        return 0;
    name[length] = 0;
    return 1;
}

/* Count a call, and return its fault. The file is given by `path`, or by the descriptor `folder` if `path` is NULL. */
static enum happening meet(const char *call, int folder, const char *path)
{
    char name[2048];
    if (!control || !control->session || getsid(0) != control->session)
        return NOTHING;
    if (path && path[0] == '/') {
        snprintf(name, sizeof name, "%s", path);
    } else if (path && folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, name, sizeof name) < 0)
            return NOTHING;
        size_t length = strlen(name);
        snprintf(name + length, sizeof name - length, "/%s", path);
    } else {
        if (!name_of(folder, name, sizeof name))
            return NOTHING;
        if (path) {
            size_t length = strlen(name);
            snprintf(name + length, sizeof name - length, "/%s", path);
        }
    }
    if (!is_inside(name))
        return NOTHING;
    int64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (number <= MOST_CALLS)
        snprintf(control->calls[number - 1], NAME_BYTES, "%s of %s", call, name + strlen(control->root));
    if (number != control->target)
        return NOTHING;
    if (control->what == SIGNAL_BEFORE)
        kill(control->is_all ? -control->session : control->session, control->number);
    return control->what;
}

static void leave(enum happening what)
{
    int kept = errno;
    if (what == SIGNAL_AFTER)
        kill(control->is_all ? -control->session : control->session, control->number);
    errno = kept;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define PASS(type, name, folder, path, ...) \
    do { \
        REAL(name); \
        enum happening what = meet(#name, folder, path); \
        if (what == FAIL) { \
            errno = control->number; \
            return (type)-1; \
        } \
        type result = real(__VA_ARGS__); \
        leave(what); \
        return result; \
    } while (0)

/* Bytes that a short read or write transfers: half of them, but at least one. */
static size_t taken(enum happening what, size_t size)
{
    return what == SHORT && size > 1 ? size / 2 : size;
}

#define PASS_SIZED(type, name, file, size, ...) \
    do { \
        REAL(name); \
        enum happening what = meet(#name, file, NULL); \
        if (what == FAIL) { \
            errno = control->number; \
            return (type)-1; \
        } \
        size = taken(what, size); \
        type result = real(__VA_ARGS__); \
        leave(what); \
        return result; \
    } while (0)

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...)
{
    MODE(flags)
    PASS(int, open, AT_FDCWD, path, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE(flags)
    PASS(int, open64, AT_FDCWD, path, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    PASS(int, openat, folder, path, folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    PASS(int, openat64, folder, path, folder, path, flags, mode);
}

ssize_t read(int file, void *data, size_t size)
{
    PASS_SIZED(ssize_t, read, file, size, file, data, size);
}

ssize_t pread(int file, void *data, size_t size, off_t at)
{
    PASS_SIZED(ssize_t, pread, file, size, file, data, size, at);
}

ssize_t pread64(int file, void *data, size_t size, off64_t at)
{
    PASS_SIZED(ssize_t, pread64, file, size, file, data, size, at);
}

ssize_t write(int file, const void *data, size_t size)
{
    PASS_SIZED(ssize_t, write, file, size, file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    PASS_SIZED(ssize_t, pwrite, file, size, file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    PASS_SIZED(ssize_t, pwrite64, file, size, file, data, size, at);
}

ssize_t copy_file_range(int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags)
{
    PASS_SIZED(ssize_t, copy_file_range, file, size, from, at, file, to, size, flags);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    PASS(ssize_t, writev, file, NULL, file, parts, count);
}

int rename(const char *from, const char *to)
{
    PASS(int, rename, AT_FDCWD, to, from, to);
}

int renameat(int folder, const char *from, int other, const char *to)
{
    PASS(int, renameat, other, to, folder, from, other, to);
}

int link(const char *from, const char *to)
{
    PASS(int, link, AT_FDCWD, to, from, to);
}

int fsync(int file)
{
    PASS(int, fsync, file, NULL, file);
}

int fdatasync(int file)
{
    PASS(int, fdatasync, file, NULL, file);
}

int ftruncate(int file, off_t size)
{
    PASS(int, ftruncate, file, NULL, file, size);
}

int ftruncate64(int file, off64_t size)
{
    PASS(int, ftruncate64, file, NULL, file, size);
}

int mkdir(const char *path, mode_t mode)
{
    PASS(int, mkdir, AT_FDCWD, path, path, mode);
}

int unlink(const char *path)
{
    PASS(int, unlink, AT_FDCWD, path, path);
}

int unlinkat(int folder, const char *path, int flags)
{
    PASS(int, unlinkat, folder, path, folder, path, flags);
}

int rmdir(const char *path)
{
    PASS(int, rmdir, AT_FDCWD, path, path);
}

int posix_fallocate(int file, off_t at, off_t size)
{
    REAL(posix_fallocate);
    enum happening what = meet("posix_fallocate", file, NULL);
    if (what == FAIL)
        return control->number; /* posix_fallocate does not set errno. */
    int result = real(file, at, size);
    leave(what);
    return result;
}

int posix_fallocate64(int file, off64_t at, off64_t size)
{
    REAL(posix_fallocate64);
    enum happening what = meet("posix_fallocate64", file, NULL);
    if (what == FAIL)
        return control->number;
    int result = real(file, at, size);
    leave(what);
    return result;
}
