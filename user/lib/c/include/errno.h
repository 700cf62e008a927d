/* Error numbers. */
#ifndef ERRNO_H
#define ERRNO_H

#define EPERM 1
#define ESRCH 3
#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EINVAL 22
#define EDEADLK 35
#define EOVERFLOW 75
#define ENOTSUP 95
#define ETIMEDOUT 110

int *tench_errno(void);
#define errno (*tench_errno())

#endif
