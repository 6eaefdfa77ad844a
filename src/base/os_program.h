/* os_program.h -- what a program calls when it begins. */
#ifndef TERN_BASE_OS_PROGRAM_H
#define TERN_BASE_OS_PROGRAM_H

/* On Windows: converts the arguments of the command line from the code page to UTF-8, and sets the
 * console to UTF-8 until the program ends. If memory runs out, *argv stays as it was. */
#ifdef _WIN32
void tern_os_take_arguments(int *argc, char ***argv);
#else
#define tern_os_take_arguments(ARGC, ARGV) ((void)(ARGC), (void)(ARGV))
#endif

#endif
