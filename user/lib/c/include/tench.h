/*
 * What a C program on Tench can call. A program is a C file, compiled for aarch64-none-elf with a long double that is a double,
 * and linked with the runtime library; docs/manual/writing-a-program.md shows how.
 *
 * The names are those of standard C, so <errno.h>, <stdio.h>, <stdlib.h> and <string.h> beside this file include this one; <math.h>,
 * <pthread.h>, <semaphore.h>, <setjmp.h> and <time.h> are files of their own.
 */
#ifndef TENCH_H
#define TENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

/* The program defines main(void) or main(int argc, char **argv). */

/*
 * Asks for the memory that R1's application of this name asks for, while slabs are set up (memctl slabs); it is given back
 * when the process ends. Returns 0, or -1 if there is not enough, or no such application.
 */
int tench_profile(const char *application);

/* Neither the library nor the compiler's run-time functions have a longer one. */
_Static_assert(sizeof(long double) == sizeof(double), "compile with -Xclang -mlong-double-64");

/* Output. printf knows d i u x X o c s p a e f g A E F G %, the flags - 0 + # and space, width, precision, * and the sizes
 * hh h l ll j z t L. All return how many bytes there were. */
int putchar(int character);
int puts(const char *text);
__attribute__((format(printf, 1, 2))) int printf(const char *format, ...);
int vprintf(const char *format, va_list arguments);
__attribute__((format(printf, 3, 4))) int snprintf(char *buffer, size_t size, const char *format, ...);
int vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);

/*
 * Streams. Output goes at once, a message for each call; input is read ahead. A program that writes to standard output when nobody
 * reads any more ends with exit code 141. fopen knows r, w, a, r+, w+ and wx, each also with b. Each function fails as in standard
 * C, with the reason in errno.
 */
#define EOF (-1)
typedef struct tench_file FILE;
FILE *tench_stdin(void);
FILE *tench_stdout(void);
FILE *tench_stderr(void);
#define stdin tench_stdin()
#define stdout tench_stdout()
#define stderr tench_stderr()
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *file);
size_t fread(void *to, size_t size, size_t count, FILE *file);
size_t fwrite(const void *from, size_t size, size_t count, FILE *file);
int fgetc(FILE *file);
char *fgets(char *to, int size, FILE *file); /* a line with its end, or what fits */
int fputc(int character, FILE *file);
int fputs(const char *text, FILE *file);
int feof(FILE *file);
int ferror(FILE *file);
int fflush(FILE *file); /* does nothing */
__attribute__((format(printf, 2, 3))) int fprintf(FILE *file, const char *format, ...);
int vfprintf(FILE *file, const char *format, va_list arguments);
int remove(const char *path);
int rename(const char *from, const char *to);
int getchar(void); /* a byte, or EOF */

/* Why a function that says so has failed. */
#include <errno.h>

/*
 * Memory. Where there is none, they return null with ENOMEM, and what the program has stays as it is. A block of no bytes is
 * one like others: it has an address of its own and is freed; so is what realloc makes of no bytes. aligned_alloc takes any
 * size; an alignment that is no power of two gives null and EINVAL.
 */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
uint64_t tench_heap_requests(void);   /* how often the heap has asked for addresses */
uint64_t tench_heap_size(void);       /* bytes of addresses that it has */
uint64_t tench_memory_requests(void); /* how often the memory server was asked for memory */
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *memory, int byte, size_t size);
int memcmp(const void *one, const void *other, size_t size);

/* Text. */
size_t strlen(const char *text);
int strcmp(const char *one, const char *other);
int strncmp(const char *one, const char *other, size_t size);
char *strcpy(char *to, const char *from);
char *strchr(const char *text, int character);
long strtol(const char *text, char **end, int base);
int atoi(const char *text);

/*
 * Floating-point numbers in text: the nearest value, decimal or hexadecimal; inf, infinity, nan and nan(LETTERS). One that is too
 * large or too small sets errno to ERANGE. The symbols, here and in math.h, say that a program has floating point; one without
 * is linked with a printf that does not know such values.
 */
double strtod(const char *text, char **end) __asm__("tench_float_strtod");
float strtof(const char *text, char **end) __asm__("tench_float_strtof");
long double strtold(const char *text, char **end) __asm__("tench_float_strtod");
double atof(const char *text) __asm__("tench_float_atof");

/* The process. */
_Noreturn void exit(int code);
_Noreturn void abort(void);
char *getenv(const char *name);

/* Time. */
unsigned sleep(unsigned seconds);
void tench_sleep(uint64_t milliseconds);
uint64_t tench_uptime(void); /* milliseconds since the machine was started */
uint64_t tench_time(void);                        /* nanoseconds since then */
void tench_delay(uint64_t nanoseconds);           /* never shorter */
void tench_delay_until(uint64_t time);            /* nanoseconds since then; at once if it is past */
/*
 * Events. A notification is made with tench_notification, which returns its slot, or 0 if there is no memory for one; tench_signal
 * signals it, and so do interrupts and other processes that have a capability to it. tench_await_event waits until it is signalled,
 * and puts the bits there that were set; with a time (nanoseconds since the machine was started; 0: none), no longer than that. Both
 * return 0, or the negative number of an error of the kernel: TENCH_TIMED_OUT, or one that says what is wrong with the slot.
 */
#define TENCH_TIMED_OUT (-16)
uint32_t tench_notification(void);
int tench_signal(uint32_t notification);
int tench_await_event(uint32_t notification, uint64_t time, uint64_t *bits);
uint64_t tench_instructions(void); /* that the processor has executed; 0 where programs may not count */
uint64_t tench_process(void); /* the process identifier */

#endif
