/* os_program.h -- what a program asks of the operating system when it begins. */
#ifndef TERN_BASE_OS_PROGRAM_H
#define TERN_BASE_OS_PROGRAM_H

/* Puts the words of the command line into UTF-8, which Windows' C library has in the code page of
 * the machine, and has a console there show UTF-8 until the program ends. *argv stays where memory
 * is short. */
#ifdef _WIN32
void tern_os_take_arguments(int *argc, char ***argv);
#else
#define tern_os_take_arguments(ARGC, ARGV) ((void)(ARGC), (void)(ARGV))
#endif

#endif
