/*
 * Files and standard streams in C. Reads lines from standard input and writes them to a file, reads that back, and writes what it
 * found to standard output. Ends with the number of the step that went wrong, 0 if none did.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char path[] = "/tmp/stdio-case";

static int copy_lines(void)
{
    FILE *file = fopen(path, "w");
    char line[16];
    if (!file)
        return 1;
    while (fgets(line, sizeof line, stdin))
        if (fputs(line, file) == EOF)
            return 2;
    if (!feof(stdin) || ferror(stdin) || fgetc(stdin) != EOF || getchar() != EOF)
        return 3;
    if (fgetc(file) != EOF || errno != EBADF || !ferror(file))
        return 4;
    return fclose(file);
}

static int look(void)
{
    char bytes[8];
    FILE *file = fopen(path, "r+");
    if (!file || fread(bytes, 4, 1, file) != 1 || memcmp(bytes, "the ", 4) != 0)
        return 11;
    /* Where reading has ended, not where the library has read ahead. */
    if (fwrite("FIRST", 1, 5, file) != 5 || fputc('!', file) != '!')
        return 12;
    fclose(file);
    file = fopen(path, "a");
    if (!file || fprintf(file, "%s %d\n", "number", 42) != 10)
        return 13;
    fclose(file);
    file = fopen(path, "r");
    for (int character; (character = fgetc(file)) != EOF;)
        putchar(character);
    if (!feof(file) || ferror(file))
        return 14;
    return fclose(file);
}

static int refusals(void)
{
    if (fopen("/tmp/nothing", "r") || errno != ENOENT)
        return 21;
    if (fopen("bin/hello", "w") || errno != EROFS)
        return 22;
    if (fopen(path, "wx") || errno != EEXIST)
        return 23;
    if (fopen(path, "q") || errno != EINVAL)
        return 24;
    if (fopen("/tmp", "r") || errno != EISDIR)
        return 25;
    if (rename(path, "/tmp/moved") != 0 || remove(path) != -1 || errno != ENOENT)
        return 26;
    return remove("/tmp/moved") == 0 ? 0 : 27;
}

int main(void)
{
    int step = copy_lines();
    if (!step)
        step = look();
    if (!step)
        step = refusals();
    fprintf(stderr, "ends with %d\n", step);
    return step;
}
