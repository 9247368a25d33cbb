/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_FILE_H
#define TEMPEST_CC_FILE_H

/* All that comes of it, 0 at its end; @name is for messages. Ends the program if it fails. */
char *read_all(int fd, const char *name);

/**
 * expand_word() - a word of a command line, or those of the file that it stands for
 * @word: "@FILE", or any other
 * @words, @n: a list, which it is added to
 *
 * Files may name others. One that cannot be read is a word like any other, as it is to the
 * compilers.
 */
void expand_word(const char *word, char ***words, int *n);

#endif /* TEMPEST_CC_FILE_H */
