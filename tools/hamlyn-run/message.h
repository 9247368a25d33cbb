/* SPDX-License-Identifier: GPL-2.0-only */
/* What hamlyn-run itself says, on standard error. */
#ifndef RUN_MESSAGE_H
#define RUN_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * One line "hamlyn-run: ...", by one write: those of processes do not come in between. It
 * is given up if nobody takes it: who waits for that serves nobody.
 */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/*
 * Writes to one of our standard descriptors, which others write to as well, when there is
 * room. Return: as write(), and -1 with EAGAIN if there is none within @timeout_ms.
 */
ssize_t write_in_time(int fd, const char *text, size_t n, int timeout_ms);

/* Zeroed memory; ends the program if there is none, and its processes with it */
void *allocate(size_t n, size_t size);
void *enlarge(void *memory, size_t size);

#endif /* RUN_MESSAGE_H */
