/*
 * Procs, version 3.
 *
 * Processes.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_PROCS_H
#define TENCH_PROCS_H

#include <tench/message.h>

/* Largest stack of a main thread, in bytes. */
#define TENCH_PROCS_MAX_STACK (UINT64_C(16)<<UINT64_C(20))
/* Size of the largest program file that can be handed over, in bytes. */
#define TENCH_PROCS_MAX_FILE (UINT64_C(8)<<UINT64_C(20))
/* Maximum size of all segments together of a program that is handed over, in bytes. */
#define TENCH_PROCS_MAX_LOADED (UINT64_C(16)<<UINT64_C(20))
/* Maximum length of a program name in bytes. */
#define TENCH_PROCS_MAX_NAME 255
/* Maximum length of a server's name in bytes. */
#define TENCH_PROCS_MAX_SERVICE 32
/* Maximum number of bytes of text in one `append`. */
#define TENCH_PROCS_MAX_APPEND 448
/* Maximum number of capabilities in one reply. */
#define TENCH_PROCS_CAPABILITIES_PER_REPLY 10

/* Purpose of a part of an address space that a process made itself. */
enum tench_procs_region_kind {
    /* Memory for any purpose. */
    TENCH_PROCS_REGION_KIND_ANONYMOUS = 1,
    /* The heap. */
    TENCH_PROCS_REGION_KIND_HEAP = 2,
    /* A thread's stack. */
    TENCH_PROCS_REGION_KIND_STACK = 3,
    /* The page below a stack, or another that is never mapped. */
    TENCH_PROCS_REGION_KIND_GUARD = 4,
    /* A mapped frame. */
    TENCH_PROCS_REGION_KIND_FRAME = 5,
};

/* Whether it is one of them. */
static inline bool tench_procs_region_kind_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_REGION_KIND_ANONYMOUS:
    case TENCH_PROCS_REGION_KIND_HEAP:
    case TENCH_PROCS_REGION_KIND_STACK:
    case TENCH_PROCS_REGION_KIND_GUARD:
    case TENCH_PROCS_REGION_KIND_FRAME:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_procs_region_kind_text(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_REGION_KIND_ANONYMOUS:
        return "anonymous memory";
    case TENCH_PROCS_REGION_KIND_HEAP:
        return "heap";
    case TENCH_PROCS_REGION_KIND_STACK:
        return "thread's stack";
    case TENCH_PROCS_REGION_KIND_GUARD:
        return "guard page";
    case TENCH_PROCS_REGION_KIND_FRAME:
        return "mapped frame";
    default:
        return NULL;
    }
}

/* A list of strings with which a process is started. */
enum tench_procs_strings {
    /* Arguments after the program's name. */
    TENCH_PROCS_STRINGS_ARGUMENTS = 0,
    /* Environment: `NAME=value`. Nothing is inherited. */
    TENCH_PROCS_STRINGS_ENVIRONMENT = 1,
};

/* Whether it is one of them. */
static inline bool tench_procs_strings_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_STRINGS_ARGUMENTS:
    case TENCH_PROCS_STRINGS_ENVIRONMENT:
        return true;
    default:
        return false;
    }
}

/* State of a process. */
enum tench_procs_state {
    /* The process has not started yet. */
    TENCH_PROCS_STATE_PREPARING = 0,
    /* Started and not ended. */
    TENCH_PROCS_STATE_RUNNING = 1,
    /* The process has been suspended: none of its threads runs. */
    TENCH_PROCS_STATE_SUSPENDED = 2,
    /* The process has ended by itself; the detail is its exit code. */
    TENCH_PROCS_STATE_EXITED = 3,
    /* The process was killed. */
    TENCH_PROCS_STATE_KILLED = 4,
    /* A fault ended it; the detail is a [`FaultKind`]. */
    TENCH_PROCS_STATE_FAULTED = 5,
};

/* Whether it is one of them. */
static inline bool tench_procs_state_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_STATE_PREPARING:
    case TENCH_PROCS_STATE_RUNNING:
    case TENCH_PROCS_STATE_SUSPENDED:
    case TENCH_PROCS_STATE_EXITED:
    case TENCH_PROCS_STATE_KILLED:
    case TENCH_PROCS_STATE_FAULTED:
        return true;
    default:
        return false;
    }
}

/* Kind of a fault. */
enum tench_procs_fault_kind {
    /* An access to the first page. */
    TENCH_PROCS_FAULT_KIND_NULL_DEREFERENCE = 1,
    /* An access to the page below a stack. */
    TENCH_PROCS_FAULT_KIND_GUARD_PAGE = 2,
    /* An access to an address of the kernel's half. */
    TENCH_PROCS_FAULT_KIND_KERNEL_ADDRESS = 3,
    /* An access that the mapping does not allow. */
    TENCH_PROCS_FAULT_KIND_RIGHTS_VIOLATION = 4,
    /* An access where nothing is. */
    TENCH_PROCS_FAULT_KIND_NEVER_ALLOCATED = 5,
    /* An instruction that does not exist. */
    TENCH_PROCS_FAULT_KIND_UNDEFINED_INSTRUCTION = 6,
    /* An instruction that programs may not execute. */
    TENCH_PROCS_FAULT_KIND_PRIVILEGED_INSTRUCTION = 7,
    /* An access, program counter or stack pointer that is not aligned as it must be. */
    TENCH_PROCS_FAULT_KIND_MISALIGNED = 8,
    /* A breakpoint that no debugger handles. */
    TENCH_PROCS_FAULT_KIND_BREAKPOINT = 9,
    /* A system call of another system. */
    TENCH_PROCS_FAULT_KIND_FOREIGN_CALL = 10,
    /* Any other exception. */
    TENCH_PROCS_FAULT_KIND_OTHER = 11,
    /* An access to memory on demand, when no memory is left. */
    TENCH_PROCS_FAULT_KIND_OUT_OF_MEMORY = 12,
    /*
     * A page fault in memory of the process's own while one of its threads handled a fault or a foreign system
     * call: page faults are not handled then.
     */
    TENCH_PROCS_FAULT_KIND_IN_HANDLER = 13,
    /*
     * The budget of the scheduling context was used up, and the thread's faults of that kind come to the process
     * server.
     */
    TENCH_PROCS_FAULT_KIND_TIMEOUT = 14,
};

/* Whether it is one of them. */
static inline bool tench_procs_fault_kind_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_FAULT_KIND_NULL_DEREFERENCE:
    case TENCH_PROCS_FAULT_KIND_GUARD_PAGE:
    case TENCH_PROCS_FAULT_KIND_KERNEL_ADDRESS:
    case TENCH_PROCS_FAULT_KIND_RIGHTS_VIOLATION:
    case TENCH_PROCS_FAULT_KIND_NEVER_ALLOCATED:
    case TENCH_PROCS_FAULT_KIND_UNDEFINED_INSTRUCTION:
    case TENCH_PROCS_FAULT_KIND_PRIVILEGED_INSTRUCTION:
    case TENCH_PROCS_FAULT_KIND_MISALIGNED:
    case TENCH_PROCS_FAULT_KIND_BREAKPOINT:
    case TENCH_PROCS_FAULT_KIND_FOREIGN_CALL:
    case TENCH_PROCS_FAULT_KIND_OTHER:
    case TENCH_PROCS_FAULT_KIND_OUT_OF_MEMORY:
    case TENCH_PROCS_FAULT_KIND_IN_HANDLER:
    case TENCH_PROCS_FAULT_KIND_TIMEOUT:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_procs_fault_kind_text(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_FAULT_KIND_NULL_DEREFERENCE:
        return "null dereference";
    case TENCH_PROCS_FAULT_KIND_GUARD_PAGE:
        return "guard page";
    case TENCH_PROCS_FAULT_KIND_KERNEL_ADDRESS:
        return "kernel address";
    case TENCH_PROCS_FAULT_KIND_RIGHTS_VIOLATION:
        return "rights violation";
    case TENCH_PROCS_FAULT_KIND_NEVER_ALLOCATED:
        return "never allocated";
    case TENCH_PROCS_FAULT_KIND_UNDEFINED_INSTRUCTION:
        return "undefined instruction";
    case TENCH_PROCS_FAULT_KIND_PRIVILEGED_INSTRUCTION:
        return "privileged instruction";
    case TENCH_PROCS_FAULT_KIND_MISALIGNED:
        return "misaligned access";
    case TENCH_PROCS_FAULT_KIND_BREAKPOINT:
        return "breakpoint";
    case TENCH_PROCS_FAULT_KIND_FOREIGN_CALL:
        return "foreign system call";
    case TENCH_PROCS_FAULT_KIND_OTHER:
        return "exception";
    case TENCH_PROCS_FAULT_KIND_OUT_OF_MEMORY:
        return "out of memory";
    case TENCH_PROCS_FAULT_KIND_IN_HANDLER:
        return "page fault in a fault handler";
    case TENCH_PROCS_FAULT_KIND_TIMEOUT:
        return "budget used up";
    default:
        return NULL;
    }
}

/* Defect of a program's file. */
enum tench_procs_defect {
    /* The file does not begin with the four bytes of ELF. */
    TENCH_PROCS_DEFECT_NOT_ELF = 1,
    /* The file ends within the header with which it begins. */
    TENCH_PROCS_DEFECT_HEADER_CUT_OFF = 15,
    /* For a machine of 32 bits, or an unknown class. */
    TENCH_PROCS_DEFECT_WRONG_CLASS = 16,
    /* Big-endian, or an unknown order of bytes. */
    TENCH_PROCS_DEFECT_WRONG_BYTE_ORDER = 17,
    /* A version of ELF other than 1. */
    TENCH_PROCS_DEFECT_WRONG_VERSION = 18,
    /* For another kind of processor. */
    TENCH_PROCS_DEFECT_WRONG_MACHINE = 2,
    /* An object file, a memory dump or an unknown type. */
    TENCH_PROCS_DEFECT_NOT_EXECUTABLE = 3,
    /* A shared library: position-independent, and not marked as a program. */
    TENCH_PROCS_DEFECT_SHARED_LIBRARY = 19,
    /* The entries of the table of program headers have another size than ELF says. */
    TENCH_PROCS_DEFECT_BAD_HEADER_SIZE = 20,
    /* The table of program headers lies outside the file. */
    TENCH_PROCS_DEFECT_HEADERS_OUTSIDE_FILE = 21,
    /* No loadable segment. */
    TENCH_PROCS_DEFECT_NO_SEGMENTS = 4,
    /* More loadable segments than the process information page describes. */
    TENCH_PROCS_DEFECT_TOO_MANY_SEGMENTS = 5,
    /* A segment's bytes lie outside the file. */
    TENCH_PROCS_DEFECT_SEGMENT_OUTSIDE_FILE = 6,
    /* A segment's size in the file exceeds its size in memory. */
    TENCH_PROCS_DEFECT_BAD_SEGMENT_SIZE = 7,
    /* A segment's address or offset in the file and its size exceed 64 bits together. */
    TENCH_PROCS_DEFECT_SIZE_OVERFLOW = 22,
    /* A segment lies in the first page, which stays unmapped against null dereferences. */
    TENCH_PROCS_DEFECT_FIRST_PAGE = 23,
    /* A segment lies where the loader and libraries put things. */
    TENCH_PROCS_DEFECT_BAD_ADDRESS = 8,
    /*
     * A segment's alignment is no power of two, or contradicts its address and its place in the file, or is more
     * than 2 MiB in a position-independent program.
     */
    TENCH_PROCS_DEFECT_BAD_ALIGNMENT = 24,
    /* Two segments share a page. */
    TENCH_PROCS_DEFECT_SEGMENTS_OVERLAP = 9,
    /* A segment is both writable and executable. */
    TENCH_PROCS_DEFECT_WRITABLE_AND_EXECUTABLE = 10,
    /* A segment is not readable. */
    TENCH_PROCS_DEFECT_NOT_READABLE = 11,
    /* The program asks for a stack on which it can execute. */
    TENCH_PROCS_DEFECT_EXECUTABLE_STACK = 25,
    /* The first instruction lies in no segment. */
    TENCH_PROCS_DEFECT_BAD_ENTRY = 12,
    /* The first instruction lies in a segment that is not executable. */
    TENCH_PROCS_DEFECT_ENTRY_NOT_EXECUTABLE = 26,
    /* The first instruction's address is no multiple of 4. */
    TENCH_PROCS_DEFECT_ENTRY_MISALIGNED = 27,
    /* The program needs a dynamic linker. */
    TENCH_PROCS_DEFECT_NEEDS_INTERPRETER = 13,
    /* The program needs shared libraries. */
    TENCH_PROCS_DEFECT_NEEDS_LIBRARIES = 28,
    /* A program with fixed addresses has a dynamic section. */
    TENCH_PROCS_DEFECT_DYNAMIC_AT_FIXED_ADDRESS = 29,
    /*
     * The dynamic section, or a table that it names, lies outside the file, has no end, or has entries of a wrong
     * size.
     */
    TENCH_PROCS_DEFECT_BAD_DYNAMIC_SECTION = 30,
    /* A relocation other than by the distance from where the program was linked. */
    TENCH_PROCS_DEFECT_UNKNOWN_RELOCATION = 31,
    /* A relocation of what the file has no bytes for. */
    TENCH_PROCS_DEFECT_RELOCATION_OUTSIDE = 32,
    /* A relocation of code or constants, which cannot be shared then. */
    TENCH_PROCS_DEFECT_RELOCATION_OF_CONSTANT = 33,
    /* Relocations out of order, two of one word, or one of a word that is not aligned. */
    TENCH_PROCS_DEFECT_BAD_RELOCATION = 34,
    /* Variables of each thread that the linker lays out, which threads here do not have. */
    TENCH_PROCS_DEFECT_THREAD_LOCAL = 35,
    /* A note that does not end where its part of the file ends, or Tench's own with other contents. */
    TENCH_PROCS_DEFECT_BAD_NOTE = 36,
    /* The program is handed over, and has more than [`MAX_LOADED`]. */
    TENCH_PROCS_DEFECT_TOO_LARGE = 37,
    /* Arguments and environment do not fit into the process information block. */
    TENCH_PROCS_DEFECT_ARGUMENTS_TOO_LONG = 14,
};

/* Whether it is one of them. */
static inline bool tench_procs_defect_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_DEFECT_NOT_ELF:
    case TENCH_PROCS_DEFECT_HEADER_CUT_OFF:
    case TENCH_PROCS_DEFECT_WRONG_CLASS:
    case TENCH_PROCS_DEFECT_WRONG_BYTE_ORDER:
    case TENCH_PROCS_DEFECT_WRONG_VERSION:
    case TENCH_PROCS_DEFECT_WRONG_MACHINE:
    case TENCH_PROCS_DEFECT_NOT_EXECUTABLE:
    case TENCH_PROCS_DEFECT_SHARED_LIBRARY:
    case TENCH_PROCS_DEFECT_BAD_HEADER_SIZE:
    case TENCH_PROCS_DEFECT_HEADERS_OUTSIDE_FILE:
    case TENCH_PROCS_DEFECT_NO_SEGMENTS:
    case TENCH_PROCS_DEFECT_TOO_MANY_SEGMENTS:
    case TENCH_PROCS_DEFECT_SEGMENT_OUTSIDE_FILE:
    case TENCH_PROCS_DEFECT_BAD_SEGMENT_SIZE:
    case TENCH_PROCS_DEFECT_SIZE_OVERFLOW:
    case TENCH_PROCS_DEFECT_FIRST_PAGE:
    case TENCH_PROCS_DEFECT_BAD_ADDRESS:
    case TENCH_PROCS_DEFECT_BAD_ALIGNMENT:
    case TENCH_PROCS_DEFECT_SEGMENTS_OVERLAP:
    case TENCH_PROCS_DEFECT_WRITABLE_AND_EXECUTABLE:
    case TENCH_PROCS_DEFECT_NOT_READABLE:
    case TENCH_PROCS_DEFECT_EXECUTABLE_STACK:
    case TENCH_PROCS_DEFECT_BAD_ENTRY:
    case TENCH_PROCS_DEFECT_ENTRY_NOT_EXECUTABLE:
    case TENCH_PROCS_DEFECT_ENTRY_MISALIGNED:
    case TENCH_PROCS_DEFECT_NEEDS_INTERPRETER:
    case TENCH_PROCS_DEFECT_NEEDS_LIBRARIES:
    case TENCH_PROCS_DEFECT_DYNAMIC_AT_FIXED_ADDRESS:
    case TENCH_PROCS_DEFECT_BAD_DYNAMIC_SECTION:
    case TENCH_PROCS_DEFECT_UNKNOWN_RELOCATION:
    case TENCH_PROCS_DEFECT_RELOCATION_OUTSIDE:
    case TENCH_PROCS_DEFECT_RELOCATION_OF_CONSTANT:
    case TENCH_PROCS_DEFECT_BAD_RELOCATION:
    case TENCH_PROCS_DEFECT_THREAD_LOCAL:
    case TENCH_PROCS_DEFECT_BAD_NOTE:
    case TENCH_PROCS_DEFECT_TOO_LARGE:
    case TENCH_PROCS_DEFECT_ARGUMENTS_TOO_LONG:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_procs_defect_text(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_DEFECT_NOT_ELF:
        return "not an ELF file";
    case TENCH_PROCS_DEFECT_HEADER_CUT_OFF:
        return "the file ends within its ELF header";
    case TENCH_PROCS_DEFECT_WRONG_CLASS:
        return "not a 64-bit program";
    case TENCH_PROCS_DEFECT_WRONG_BYTE_ORDER:
        return "not a little-endian program";
    case TENCH_PROCS_DEFECT_WRONG_VERSION:
        return "an unknown version of ELF";
    case TENCH_PROCS_DEFECT_WRONG_MACHINE:
        return "not an AArch64 program";
    case TENCH_PROCS_DEFECT_NOT_EXECUTABLE:
        return "not an executable; was it linked?";
    case TENCH_PROCS_DEFECT_SHARED_LIBRARY:
        return "a shared library, not a program";
    case TENCH_PROCS_DEFECT_BAD_HEADER_SIZE:
        return "the program headers have a wrong size";
    case TENCH_PROCS_DEFECT_HEADERS_OUTSIDE_FILE:
        return "the program headers lie outside the file";
    case TENCH_PROCS_DEFECT_NO_SEGMENTS:
        return "nothing to load";
    case TENCH_PROCS_DEFECT_TOO_MANY_SEGMENTS:
        return "too many segments";
    case TENCH_PROCS_DEFECT_SEGMENT_OUTSIDE_FILE:
        return "a segment lies outside the file";
    case TENCH_PROCS_DEFECT_BAD_SEGMENT_SIZE:
        return "a segment is larger in the file than in memory";
    case TENCH_PROCS_DEFECT_SIZE_OVERFLOW:
        return "a segment's size overflows";
    case TENCH_PROCS_DEFECT_FIRST_PAGE:
        return "a segment lies in the first page, which stays unmapped";
    case TENCH_PROCS_DEFECT_BAD_ADDRESS:
        return "a segment lies above the addresses for programs";
    case TENCH_PROCS_DEFECT_BAD_ALIGNMENT:
        return "a segment's alignment contradicts its address";
    case TENCH_PROCS_DEFECT_SEGMENTS_OVERLAP:
        return "two segments share a page";
    case TENCH_PROCS_DEFECT_WRITABLE_AND_EXECUTABLE:
        return "a segment is writable and executable";
    case TENCH_PROCS_DEFECT_NOT_READABLE:
        return "a segment is not readable";
    case TENCH_PROCS_DEFECT_EXECUTABLE_STACK:
        return "it wants an executable stack";
    case TENCH_PROCS_DEFECT_BAD_ENTRY:
        return "the entry point lies in no segment";
    case TENCH_PROCS_DEFECT_ENTRY_NOT_EXECUTABLE:
        return "the entry point lies in a segment that is not executable";
    case TENCH_PROCS_DEFECT_ENTRY_MISALIGNED:
        return "the entry point is not aligned";
    case TENCH_PROCS_DEFECT_NEEDS_INTERPRETER:
        return "it needs a dynamic linker; link it statically";
    case TENCH_PROCS_DEFECT_NEEDS_LIBRARIES:
        return "it needs shared libraries; link it statically";
    case TENCH_PROCS_DEFECT_DYNAMIC_AT_FIXED_ADDRESS:
        return "it has a dynamic section and fixed addresses; link it statically or with -pie";
    case TENCH_PROCS_DEFECT_BAD_DYNAMIC_SECTION:
        return "its dynamic section is damaged";
    case TENCH_PROCS_DEFECT_UNKNOWN_RELOCATION:
        return "it has a relocation of an unknown kind; link it with -static -pie";
    case TENCH_PROCS_DEFECT_RELOCATION_OUTSIDE:
        return "a relocation lies outside the program's data";
    case TENCH_PROCS_DEFECT_RELOCATION_OF_CONSTANT:
        return "a relocation changes code or constants; compile with position-independent code";
    case TENCH_PROCS_DEFECT_BAD_RELOCATION:
        return "its relocations are out of order or not aligned";
    case TENCH_PROCS_DEFECT_THREAD_LOCAL:
        return "it has thread-local variables of the linker; use those of the library";
    case TENCH_PROCS_DEFECT_BAD_NOTE:
        return "a note in it is damaged";
    case TENCH_PROCS_DEFECT_TOO_LARGE:
        return "its segments have more than 16 MiB together, which only programs of the boot archive may have";
    case TENCH_PROCS_DEFECT_ARGUMENTS_TOO_LONG:
        return "arguments and environment are too long";
    default:
        return NULL;
    }
}

/* Why a request was refused. */
enum tench_procs_error {
    /* A stack of more than [`MAX_STACK`]. */
    TENCH_PROCS_ERROR_STACK_TOO_LARGE = 1,
    /* There is no such process. */
    TENCH_PROCS_ERROR_NO_SUCH_PROCESS = 2,
    /* Another process prepares the process. */
    TENCH_PROCS_ERROR_NOT_YOURS = 3,
    /* The process is not in a state for this. */
    TENCH_PROCS_ERROR_WRONG_STATE = 4,
    /* The archive has no such program. */
    TENCH_PROCS_ERROR_NO_SUCH_PROGRAM = 5,
    /* The program's file has a [`Defect`]. */
    TENCH_PROCS_ERROR_BAD_PROGRAM = 6,
    /* There is not enough memory. */
    TENCH_PROCS_ERROR_OUT_OF_MEMORY = 7,
    /* The table of processes is full. */
    TENCH_PROCS_ERROR_TOO_MANY_PROCESSES = 8,
    /* A name, the arguments or the environment are too long. */
    TENCH_PROCS_ERROR_TEXT_TOO_LONG = 9,
    /* A capability cannot be given in this slot. */
    TENCH_PROCS_ERROR_BAD_SLOT = 10,
    /* The priority exceeds the caller's ceiling. */
    TENCH_PROCS_ERROR_PRIORITY_TOO_HIGH = 11,
    /*
     * The process is no descendant, and the capability used does not permit managing others; or a power or a quota
     * is to be passed on that the caller does not have.
     */
    TENCH_PROCS_ERROR_NOT_ALLOWED = 12,
    /* Too many threads wait. */
    TENCH_PROCS_ERROR_FULL = 13,
    /* The kernel refused what should be possible. */
    TENCH_PROCS_ERROR_INTERNAL = 15,
    /* The server ended too often and is not started again. */
    TENCH_PROCS_ERROR_GIVEN_UP = 17,
    /* The process has not ended in time. */
    TENCH_PROCS_ERROR_TIMED_OUT = 18,
    /* The process is `init`, `mem` or `procs`. */
    TENCH_PROCS_ERROR_ESSENTIAL = 16,
    /* The server does not run now. */
    TENCH_PROCS_ERROR_NOT_RUNNING = 19,
    /* A server of this name is started again when it ends. */
    TENCH_PROCS_ERROR_EXISTS = 20,
    /* A family of processes prepares others with more text than its share of the server's memory. */
    TENCH_PROCS_ERROR_TOO_MUCH_TEXT = 21,
    /*
     * A family of processes has given more capabilities to processes in preparation than its share of the server's
     * slots.
     */
    TENCH_PROCS_ERROR_TOO_MANY_CAPABILITIES = 24,
    /* The file of a program that is handed over is larger than [`MAX_FILE`], or than was said. */
    TENCH_PROCS_ERROR_TOO_LARGE = 22,
    /* A program that is handed over has no name, or one with a control character. */
    TENCH_PROCS_ERROR_BAD_NAME = 23,
};

/* Whether it is one of them. */
static inline bool tench_procs_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_ERROR_STACK_TOO_LARGE:
    case TENCH_PROCS_ERROR_NO_SUCH_PROCESS:
    case TENCH_PROCS_ERROR_NOT_YOURS:
    case TENCH_PROCS_ERROR_WRONG_STATE:
    case TENCH_PROCS_ERROR_NO_SUCH_PROGRAM:
    case TENCH_PROCS_ERROR_BAD_PROGRAM:
    case TENCH_PROCS_ERROR_OUT_OF_MEMORY:
    case TENCH_PROCS_ERROR_TOO_MANY_PROCESSES:
    case TENCH_PROCS_ERROR_TEXT_TOO_LONG:
    case TENCH_PROCS_ERROR_BAD_SLOT:
    case TENCH_PROCS_ERROR_PRIORITY_TOO_HIGH:
    case TENCH_PROCS_ERROR_NOT_ALLOWED:
    case TENCH_PROCS_ERROR_FULL:
    case TENCH_PROCS_ERROR_INTERNAL:
    case TENCH_PROCS_ERROR_GIVEN_UP:
    case TENCH_PROCS_ERROR_TIMED_OUT:
    case TENCH_PROCS_ERROR_ESSENTIAL:
    case TENCH_PROCS_ERROR_NOT_RUNNING:
    case TENCH_PROCS_ERROR_EXISTS:
    case TENCH_PROCS_ERROR_TOO_MUCH_TEXT:
    case TENCH_PROCS_ERROR_TOO_MANY_CAPABILITIES:
    case TENCH_PROCS_ERROR_TOO_LARGE:
    case TENCH_PROCS_ERROR_BAD_NAME:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_procs_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_PROCS_ERROR_STACK_TOO_LARGE:
        return "a main thread's stack has at most 16 MiB";
    case TENCH_PROCS_ERROR_NO_SUCH_PROCESS:
        return "no such process; `ps` lists them";
    case TENCH_PROCS_ERROR_NOT_YOURS:
        return "another process prepares this one";
    case TENCH_PROCS_ERROR_WRONG_STATE:
        return "the process's state does not allow this";
    case TENCH_PROCS_ERROR_NO_SUCH_PROGRAM:
        return "no such program in the boot archive";
    case TENCH_PROCS_ERROR_BAD_PROGRAM:
        return "the program cannot be loaded";
    case TENCH_PROCS_ERROR_OUT_OF_MEMORY:
        return "not enough memory";
    case TENCH_PROCS_ERROR_TOO_MANY_PROCESSES:
        return "the table of processes is full";
    case TENCH_PROCS_ERROR_TEXT_TOO_LONG:
        return "the text is too long";
    case TENCH_PROCS_ERROR_BAD_SLOT:
        return "a capability cannot be given in this slot, or it is taken";
    case TENCH_PROCS_ERROR_PRIORITY_TOO_HIGH:
        return "the priority exceeds your ceiling";
    case TENCH_PROCS_ERROR_NOT_ALLOWED:
        return "this takes a power that you do not have; `caps` shows which you have";
    case TENCH_PROCS_ERROR_FULL:
        return "too many threads wait; try again later";
    case TENCH_PROCS_ERROR_INTERNAL:
        return "the kernel contradicts the process server's records; this is a defect";
    case TENCH_PROCS_ERROR_GIVEN_UP:
        return "the server ended too often and is not started again";
    case TENCH_PROCS_ERROR_TIMED_OUT:
        return "the process has not ended in time";
    case TENCH_PROCS_ERROR_ESSENTIAL:
        return "nothing would go on without it";
    case TENCH_PROCS_ERROR_NOT_RUNNING:
        return "the server does not run; it may be about to be started again";
    case TENCH_PROCS_ERROR_EXISTS:
        return "a server of this name is supervised already";
    case TENCH_PROCS_ERROR_TOO_MUCH_TEXT:
        return "too many processes are prepared with too much text; start some, or give them up";
    case TENCH_PROCS_ERROR_TOO_MANY_CAPABILITIES:
        return "too many capabilities were given to processes in preparation; start some, or give them up";
    case TENCH_PROCS_ERROR_TOO_LARGE:
        return "a program's file has at most 8 MiB, and no more bytes than were announced";
    case TENCH_PROCS_ERROR_BAD_NAME:
        return "a program's name is not empty and has no control characters";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_procs_failure(int code)
{
    const char *text = code > 0 ? tench_procs_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_procs_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_procs_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* Status of a process. */
struct tench_procs_status {
    /* Number of the process. */
    uint64_t process;
    /* State of the process. */
    enum tench_procs_state state;
    /* Exit code, or number of a [`FaultKind`], in the states that have one. */
    uint64_t detail;
    /* Number of its parent. */
    uint64_t parent;
    /* Priority of its main thread. */
    uint64_t priority;
    /* Ticks of processor time of all its threads, including ended ones. Unknown for `init` and `mem`: 0. */
    uint64_t ticks;
    /* Size of its program in bytes. */
    uint64_t size;
    /* The path or name by which it was started. */
    char name[TENCH_PROCS_MAX_NAME + 1];
    size_t name_length;
};

static inline void tench_procs_status_put(struct tench_message *message, const struct tench_procs_status *value)
{
    tench_put(message, (uint64_t)value->process);
    tench_put(message, (uint64_t)value->state);
    tench_put(message, (uint64_t)value->detail);
    tench_put(message, (uint64_t)value->parent);
    tench_put(message, (uint64_t)value->priority);
    tench_put(message, (uint64_t)value->ticks);
    tench_put(message, (uint64_t)value->size);
    tench_put_text(message, value->name, value->name_length < TENCH_PROCS_MAX_NAME ? value->name_length : TENCH_PROCS_MAX_NAME);
}

static inline void tench_procs_status_take(struct tench_reader *reader, struct tench_procs_status *value)
{
    value->process = tench_take(reader);
    value->state = (enum tench_procs_state)tench_take(reader);
    if (!tench_procs_state_is((uint64_t)value->state))
        reader->bad = true;
    value->detail = tench_take(reader);
    value->parent = tench_take(reader);
    value->priority = tench_take(reader);
    value->ticks = tench_take(reader);
    value->size = tench_take(reader);
    value->name_length = tench_take_bytes(reader, value->name, TENCH_PROCS_MAX_NAME);
    value->name[value->name_length] = '\0';
}

/* A capability in a process's CSpace. */
struct tench_procs_capability {
    /* Address of the capability. */
    tench_cap address;
    /* Kind of its object. */
    uint64_t kind;
    /* Rights of the capability. */
    uint8_t rights;
    /* Log2 of the object's size in bytes. */
    uint32_t size_bits;
    /* Badge of the capability. */
    uint64_t badge;
    /* Physical address of memory, for those with the power `memory`; number of an interrupt; otherwise 0. */
    uint64_t object;
};

static inline void tench_procs_capability_put(struct tench_message *message, const struct tench_procs_capability *value)
{
    tench_put(message, (uint64_t)value->address);
    tench_put(message, (uint64_t)value->kind);
    tench_put(message, (uint64_t)value->rights);
    tench_put(message, (uint64_t)value->size_bits);
    tench_put(message, (uint64_t)value->badge);
    tench_put(message, (uint64_t)value->object);
}

static inline void tench_procs_capability_take(struct tench_reader *reader, struct tench_procs_capability *value)
{
    value->address = (tench_cap)tench_take_at_most(reader, UINT32_MAX);
    value->kind = tench_take(reader);
    value->rights = (uint8_t)tench_take_at_most(reader, UINT8_MAX);
    value->size_bits = (uint32_t)tench_take_at_most(reader, UINT32_MAX);
    value->badge = tench_take(reader);
    value->object = tench_take(reader);
}

/* A part of an address space. */
struct tench_procs_region {
    /* Purpose of the region. */
    enum tench_procs_region_kind kind;
    /* First address. */
    uint64_t start;
    /* Size in bytes. */
    uint64_t size;
};

static inline void tench_procs_region_put(struct tench_message *message, const struct tench_procs_region *value)
{
    tench_put(message, (uint64_t)value->kind);
    tench_put(message, (uint64_t)value->start);
    tench_put(message, (uint64_t)value->size);
}

static inline void tench_procs_region_take(struct tench_reader *reader, struct tench_procs_region *value)
{
    value->kind = (enum tench_procs_region_kind)tench_take(reader);
    if (!tench_procs_region_kind_is((uint64_t)value->kind))
        reader->bad = true;
    value->start = tench_take(reader);
    value->size = tench_take(reader);
}

/* A process's report of its own fault. */
struct tench_procs_own_fault {
    /* Class, address, instruction, syndrome, as in a fault message of the kernel. */
    uint64_t report[4];
    /* Kind of the fault. */
    enum tench_procs_fault_kind kind;
    /* The region that contains the address, if the process made that itself. */
    bool region_present;
    struct tench_procs_region region;
};

static inline void tench_procs_own_fault_put(struct tench_message *message, const struct tench_procs_own_fault *value)
{
    for (size_t i0 = 0; i0 < 4; i0++) {
        tench_put(message, (uint64_t)value->report[i0]);
    }
    tench_put(message, (uint64_t)value->kind);
    tench_put(message, value->region_present);
    if (value->region_present) {
        tench_procs_region_put(message, &value->region);
    } else {
        tench_put_zeros(message, (1 + 1 + 1));
    }
}

static inline void tench_procs_own_fault_take(struct tench_reader *reader, struct tench_procs_own_fault *value)
{
    for (size_t i0 = 0; i0 < 4; i0++) {
        value->report[i0] = tench_take(reader);
    }
    value->kind = (enum tench_procs_fault_kind)tench_take(reader);
    if (!tench_procs_fault_kind_is((uint64_t)value->kind))
        reader->bad = true;
    value->region_present = (bool)tench_take_at_most(reader, 1);
    if (value->region_present) {
        tench_procs_region_take(reader, &value->region);
    } else {
        tench_take_zeros(reader, (1 + 1 + 1));
    }
}

#define TENCH_PROCS_LABEL_CREATE UINT64_C(0xb19600030001)

/* What tench_procs_create returns. */
struct tench_procs_create_reply {
    uint64_t value;
};

/*
 * Prepares a process from the program of this path in the boot archive, or of this base name, which is looked up
 * in `bin/`. Its first argument is the text as given. Returns the process's number. Nothing follows from the
 * program's name: the process will have what is set before its start; the defaults are the usual priority, or its
 * parent's ceiling if that is lower, and no powers.
 * Errors: `NoSuchProgram`, `TooManyProcesses`, `OutOfMemory`; `NoSuchProcess`, `WrongState` if the process to
 * which the capability was given has ended.
 */
static inline int tench_procs_create(tench_cap server, const char *program, size_t program_length,
    struct tench_procs_create_reply *reply)
{
    if (program_length > TENCH_PROCS_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_CREATE);
    tench_put_text(message, program, program_length);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_APPEND UINT64_C(0xb19600030002)

/*
 * Appends text to the arguments or the environment of a process in preparation: each string in it ends with a zero
 * byte, and one string can be spread over several requests. Until the process runs, the text is in this server's
 * memory, of which each family has a share.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `TextTooLong`, `TooMuchText`, `OutOfMemory`.
 */
static inline int tench_procs_append(tench_cap server, uint64_t process, enum tench_procs_strings to, const void *text,
    size_t text_length)
{
    if (text_length > TENCH_PROCS_MAX_APPEND)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_APPEND);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)to);
    tench_put_text(message, text, text_length);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_LEND UINT64_C(0xb19600030003)

/*
 * Passes a copy of a capability along to a process in preparation, in a slot of its own: one of `EXTRA` to `EXTRA
 * + EXTRA_COUNT - 1`, `NAMES`, `CONSOLE`, `FILES`, `STDIN`, `STDOUT`, `STDERR`, `KERNEL`, `INTERRUPT_CONTROL`,
 * `SERVICE`.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `BadSlot`, `TooManyCapabilities`, `OutOfMemory`.
 */
static inline int tench_procs_lend(tench_cap server, uint64_t process, tench_cap slot_, tench_cap cap)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_LEND);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)slot_);
    tench_lend(message, cap);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_GIVE_AWAY UINT64_C(0xb19600030004)

/*
 * Gives a capability as `lend` does, but the caller does not keep it. An endpoint given in `SERVICE` is revoked
 * when the server ends: its clients are refused from then on instead of waiting for ever.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `BadSlot`, `TooManyCapabilities`, `OutOfMemory`.
 */
static inline int tench_procs_give_away(tench_cap server, uint64_t process, tench_cap slot_, tench_cap cap)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_GIVE_AWAY);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)slot_);
    tench_give(message, cap);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_SET_UP UINT64_C(0xb19600030005)

/*
 * Sets how a process in preparation will run: priority, ceiling, bytes of stack (0 for the usual size), and its
 * powers, a bit for each ([`tench_abi::Powers`]), which its capabilities to servers carry. With some of them it
 * gets a capability to the kernel, with the corresponding rights. The ceiling is at most the caller's own, and the
 * powers are among those of the capability that is used.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `PriorityTooHigh`, `NotAllowed`, `StackTooLarge`.
 */
static inline int tench_procs_set_up(tench_cap server, uint64_t process, uint8_t priority, uint8_t ceiling,
    uint64_t stack, uint64_t given)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_SET_UP);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)priority);
    tench_put(message, (uint64_t)ceiling);
    tench_put(message, (uint64_t)stack);
    tench_put(message, (uint64_t)given);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_START UINT64_C(0xb19600030006)

/* What tench_procs_start returns. */
struct tench_procs_start_reply {
    bool value_present;
    enum tench_procs_defect value;
};

/*
 * Starts a process in preparation; if this fails, its record is removed. Returns the defect of the program's file,
 * if that is the cause.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `OutOfMemory`, `Internal`.
 */
static inline int tench_procs_start(tench_cap server, uint64_t process, struct tench_procs_start_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_START);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_present = (bool)tench_take_at_most(reader, 1);
    if (reply->value_present) {
        reply->value = (enum tench_procs_defect)tench_take(reader);
        if (!tench_procs_defect_is((uint64_t)reply->value))
            reader->bad = true;
    } else {
        tench_take_zeros(reader, 1);
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_EXIT UINT64_C(0xb19600030007)

/* Ends the calling process and all its threads. There is no reply. */
static inline int tench_procs_exit(tench_cap server, uint64_t code_)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_EXIT);
    tench_put(message, (uint64_t)code_);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_KILL UINT64_C(0xb19600030008)

/*
 * Kills a process. If it is in preparation, nothing is left of it then, not even its record.
 * Errors: `NoSuchProcess`, `NotAllowed`, `WrongState` (it has ended), `Essential`.
 */
static inline int tench_procs_kill(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_KILL);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_WAIT UINT64_C(0xb19600030009)

/* What tench_procs_wait returns. */
struct tench_procs_wait_reply {
    struct tench_procs_status value;
};

/*
 * Waits until a process has ended.
 * Errors: `NoSuchProcess`, `Full`, `OutOfMemory`.
 */
static inline int tench_procs_wait(tench_cap server, uint64_t process, struct tench_procs_wait_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_WAIT);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_procs_status_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_STATUS UINT64_C(0xb1960003000a)

/* What tench_procs_status returns. */
struct tench_procs_status_reply {
    struct tench_procs_status value;
};

/*
 * Returns the status of a process.
 * Errors: `NoSuchProcess`.
 */
static inline int tench_procs_status(tench_cap server, uint64_t process, struct tench_procs_status_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_STATUS);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_procs_status_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_NEXT UINT64_C(0xb1960003000b)

/* What tench_procs_next returns. */
struct tench_procs_next_reply {
    struct tench_procs_status value;
};

/*
 * Returns the status of the process with the next higher number.
 * Errors: `NoSuchProcess` when there is none.
 */
static inline int tench_procs_next(tench_cap server, uint64_t after, struct tench_procs_next_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_NEXT);
    tench_put(message, (uint64_t)after);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_procs_status_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_FIND UINT64_C(0xb1960003000c)

/* What tench_procs_find returns. */
struct tench_procs_find_reply {
    uint64_t value;
};

/*
 * Returns the process of this path or base name with the next higher number that has not ended.
 * Errors: `NoSuchProcess` when there is none.
 */
static inline int tench_procs_find(tench_cap server, const char *name, size_t name_length, uint64_t after,
    struct tench_procs_find_reply *reply)
{
    if (name_length > TENCH_PROCS_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_FIND);
    tench_put_text(message, name, name_length);
    tench_put(message, (uint64_t)after);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_SUSPEND UINT64_C(0xb1960003000d)

/*
 * Suspends a process: none of its threads runs, nor any that it makes. Its waits go on; requests to it wait.
 * Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`, `Essential`.
 */
static inline int tench_procs_suspend(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_SUSPEND);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_RESUME UINT64_C(0xb1960003000e)

/*
 * Resumes a suspended process.
 * Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`, `Essential`.
 */
static inline int tench_procs_resume(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_RESUME);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_CAPABILITIES UINT64_C(0xb1960003000f)

/* What tench_procs_capabilities returns. */
struct tench_procs_capabilities_reply {
    tench_cap first;
    struct tench_procs_capability second[TENCH_PROCS_CAPABILITIES_PER_REPLY];
    size_t second_count;
};

/*
 * Returns capabilities of a process from an address on, in order, and the address at which to continue (`NULL`:
 * that was all).
 * Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`.
 */
static inline int tench_procs_capabilities(tench_cap server, uint64_t process, tench_cap from,
    struct tench_procs_capabilities_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_CAPABILITIES);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)from);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = (tench_cap)tench_take_at_most(reader, UINT32_MAX);
    reply->second_count = (size_t)tench_take_at_most(reader, TENCH_PROCS_CAPABILITIES_PER_REPLY);
    for (size_t i0 = 0; i0 < reply->second_count; i0++) {
        tench_procs_capability_take(reader, &reply->second[i0]);
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_ABANDON UINT64_C(0xb19600030012)

/*
 * Discards a process in preparation.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState`.
 */
static inline int tench_procs_abandon(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_ABANDON);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_LIMIT UINT64_C(0xb19600030013)

/*
 * Limits the memory of a process, in preparation or running, in bytes (all ones: no limit). Memory in use beyond
 * the limit stays. By default, a child may have as much as its parent.
 * Errors: `NoSuchProcess`, `NotAllowed` (also for more than the caller may have), `WrongState`, `OutOfMemory`.
 */
static inline int tench_procs_limit(tench_cap server, uint64_t process, uint64_t bytes)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_LIMIT);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)bytes);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_FAULT UINT64_C(0xb19600030014)

/* Ends the calling process as after a fault that it could not handle itself. There is no reply. */
static inline int tench_procs_fault(tench_cap server, const struct tench_procs_own_fault *report)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_FAULT);
    tench_procs_own_fault_put(message, &(*report));
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_RECONNECT UINT64_C(0xb19600030015)

/*
 * Returns the capability to the server that every process gets in this slot, after the server was restarted; it
 * goes to the empty slot on offer. The reply comes when the server runs.
 * Errors: `BadSlot` (no such server, or another process gave that capability), `GivenUp`, `Full`.
 */
static inline int tench_procs_reconnect(tench_cap server, tench_cap slot_, tench_cap slot)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_RECONNECT);
    tench_put(message, (uint64_t)slot_);
    tench_offer(message, slot);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_WAIT_LIMITED UINT64_C(0xb19600030016)

/* What tench_procs_wait_limited returns. */
struct tench_procs_wait_limited_reply {
    struct tench_procs_status value;
};

/*
 * Waits as `wait` does, but no longer than until a time. The reply may come later if the server is busy with other
 * requests at that time.
 * Errors: `NoSuchProcess`, `TimedOut`, `Full`, `OutOfMemory`.
 */
static inline int tench_procs_wait_limited(tench_cap server, uint64_t process, uint64_t deadline,
    struct tench_procs_wait_limited_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_WAIT_LIMITED);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)deadline);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_procs_status_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_CHILD UINT64_C(0xb19600030017)

/* What tench_procs_child returns. */
struct tench_procs_child_reply {
    uint64_t value;
};

/*
 * Returns the child of `parent` with the next higher number than `after`, while its record is kept. Children stay
 * when their parent ends; its number stays in their `Status`.
 * Errors: `NoSuchProcess` when there is none.
 */
static inline int tench_procs_child(tench_cap server, uint64_t parent, uint64_t after,
    struct tench_procs_child_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_CHILD);
    tench_put(message, (uint64_t)parent);
    tench_put(message, (uint64_t)after);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_ON_INTERRUPT UINT64_C(0xb19600030018)

/*
 * Sets the notification by which the next `interrupt` tells the calling process to end by itself, instead of
 * killing it. It replaces the one set before.
 * Errors: `NoSuchProcess`, `WrongState`.
 */
static inline int tench_procs_on_interrupt(tench_cap server, tench_cap signal)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_ON_INTERRUPT);
    tench_lend(message, signal);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_INTERRUPT UINT64_C(0xb19600030019)

/* What tench_procs_interrupt returns. */
struct tench_procs_interrupt_reply {
    bool value;
};

/*
 * Ends a process as Ctrl-C does: one that wants to end by itself is told so, once; any other is killed, and so is
 * that one the next time. Returns whether it was killed.
 * Errors: as `kill`.
 */
static inline int tench_procs_interrupt(tench_cap server, uint64_t process, struct tench_procs_interrupt_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_INTERRUPT);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_SERVER UINT64_C(0xb1960003001a)

/*
 * Returns the unbadged endpoint of a server that `init` has started: it confers full authority over the server. It
 * goes to the empty slot on offer, and is revoked when the server ends.
 * Errors: `NotRunning` (also if there is no such server).
 */
static inline int tench_procs_server(tench_cap server, const char *name, size_t name_length, tench_cap slot)
{
    if (name_length > TENCH_PROCS_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_SERVER);
    tench_put_text(message, name, name_length);
    tench_offer(message, slot);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_POWERS UINT64_C(0xb1960003001b)

/* What tench_procs_powers returns. */
struct tench_procs_powers_reply {
    uint64_t value;
};

/*
 * Returns the powers that a process was given, a bit for each ([`tench_abi::Powers`]).
 * Errors: `NoSuchProcess`, `WrongState` (it has ended).
 */
static inline int tench_procs_powers(tench_cap server, uint64_t process, struct tench_procs_powers_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_POWERS);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_LOAD UINT64_C(0xb1960003001c)

/* What tench_procs_load returns. */
struct tench_procs_load_reply {
    uint64_t value;
};

/* Returns how many processes run, neither suspended nor ended; `init` and those that it has started do not count. */
static inline int tench_procs_load(tench_cap server, struct tench_procs_load_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_LOAD);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_FORGET UINT64_C(0xb1960003001d)

/*
 * Removes one of the ways in which a process of another core can make requests here, for each of which it was
 * admitted (`admit`). After the last, its process builders are discarded.
 */
static inline int tench_procs_forget(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_FORGET);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_SUPERVISE UINT64_C(0xb1960003001e)

/*
 * Makes a process in preparation, which has a capability in `SERVICE`, the server of this name: when it ends, it
 * is restarted, at most `attempts` times within a minute, `delay` milliseconds after its end and twice as many
 * each further time. Each time it gets the same memory of `keep` bytes (0: none) and `nodes` nodes of slots.
 * Errors: `NoSuchProcess`, `WrongState` (also if its program is not from the boot archive), `BadSlot` (it has no
 * capability in `SERVICE`), `Exists`, `OutOfMemory`, `TextTooLong`.
 */
static inline int tench_procs_supervise(tench_cap server, uint64_t process, const char *name, size_t name_length,
    uint32_t attempts, uint32_t delay, uint64_t keep, uint32_t nodes)
{
    if (name_length > TENCH_PROCS_MAX_SERVICE)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_SUPERVISE);
    tench_put(message, (uint64_t)process);
    tench_put_text(message, name, name_length);
    tench_put(message, (uint64_t)attempts);
    tench_put(message, (uint64_t)delay);
    tench_put(message, (uint64_t)keep);
    tench_put(message, (uint64_t)nodes);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_STOP_WITHOUT UINT64_C(0xb1960003001f)

/*
 * Makes this core stop when a process ends: without it nobody could reach the core, and nobody on it the servers
 * of other cores.
 * Errors: `NoSuchProcess`, `WrongState`.
 */
static inline int tench_procs_stop_without(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_STOP_WITHOUT);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_CREATE_OF UINT64_C(0xb19600030020)

/* What tench_procs_create_of returns. */
struct tench_procs_create_of_reply {
    uint64_t value;
};

/*
 * Prepares a process from a program that the caller hands over with [`write`](Self::write): a file of at most
 * `size` bytes, which the caller has read itself. Its name is shown to others, and is its first argument; nothing
 * else follows from it. Otherwise the process is like one that was made by `create`. The file is charged to the
 * process's own account, rounded up to a power of two of bytes.
 * Errors: `TooLarge` (more than `MAX_FILE`), `BadName`, `TooManyProcesses`, `OutOfMemory`, `Internal`;
 * `NoSuchProcess`, `WrongState` if the process to which the capability was given has ended.
 */
static inline int tench_procs_create_of(tench_cap server, const char *name, size_t name_length, uint64_t size,
    struct tench_procs_create_of_reply *reply)
{
    if (name_length > TENCH_PROCS_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_CREATE_OF);
    tench_put_text(message, name, name_length);
    tench_put(message, (uint64_t)size);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_WRITE UINT64_C(0xb19600030021)

/*
 * Appends to the file of a program that is handed over. It is checked when the process is started: what has not
 * been handed over by then is missing.
 * Errors: `NoSuchProcess`, `NotYours`, `WrongState` (also if the program is from the boot archive), `TooLarge`
 * (more than announced), `Internal`.
 */
static inline int tench_procs_write(tench_cap server, uint64_t process, const void *content, size_t content_length)
{
    if (content_length > TENCH_PROCS_MAX_APPEND)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_WRITE);
    tench_put(message, (uint64_t)process);
    tench_put_text(message, content, content_length);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_VOUCH UINT64_C(0xb19600030022)

/* What tench_procs_vouch returns. */
struct tench_procs_vouch_reply {
    uint64_t first;
    uint8_t second;
    bool third;
};

/*
 * Returns the facts about a process of this core that other cores need: its family, the highest priority that it
 * may assign, and whether its memory is limited.
 * Errors: `NoSuchProcess`, `WrongState` (it has ended).
 */
static inline int tench_procs_vouch(tench_cap server, uint64_t process, struct tench_procs_vouch_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_VOUCH);
    tench_put(message, (uint64_t)process);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = tench_take(reader);
    reply->second = (uint8_t)tench_take_at_most(reader, UINT8_MAX);
    reply->third = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PROCS_LABEL_ADMIT UINT64_C(0xb19600030023)

/*
 * Admits a process of another core: it may start processes here until as many calls of `forget`, with priorities
 * up to this ceiling, which is its own there. `client` is its badge, which contains its family.
 * Errors: `Full`, `OutOfMemory`, `NotAllowed` (it is a process of this core).
 */
static inline int tench_procs_admit(tench_cap server, uint64_t client, uint8_t ceiling)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PROCS_LABEL_ADMIT);
    tench_put(message, (uint64_t)client);
    tench_put(message, (uint64_t)ceiling);
    int code = tench_procs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
