// SPDX-License-Identifier: GPL-2.0-only
/* Files, whole; and command lines that are kept in them. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "message.h"

/* Files that name each other; one may name itself. */
#define MOST_DEEP 50

char *read_all(int fd, const char *name)
{
	size_t size = 0, room = 0;
	char *s = NULL;
	ssize_t n;

	do {
		if (room - size < 2) {
			room = 2 * room + 65536;
			s = enlarge(s, room);
		}
		n = read(fd, s + size, room - size - 1);
		if (n < 0 && errno != EINTR)
			give_up("reading %s: %s", name, strerror(errno));
		if (n > 0)
			size += (size_t)n;
	} while (n);
	s[size] = 0;
	/* A file with a 0 in it is no assembly; the assembler will say so. */
	return s;
}

static void add(const char *word, char ***words, int *n)
{
	if (!(*n & (*n + 1)))
		*words = enlarge(*words, 2 * ((size_t)*n + 1) * sizeof(**words));
	(*words)[*n] = strdup(word);
	if (!(*words)[(*n)++])
		give_up("out of memory");
}

/* Takes a word off, which is moved to where it began: quotes and backslashes are as gcc's. */
static char *next_word(char **at)
{
	char *s = *at, *word, *to, quote = 0;

	while (isspace((unsigned char)*s))
		s++;
	if (!*s)
		return NULL;
	for (word = to = s; *s && (quote || !isspace((unsigned char)*s)); s++) {
		if (*s == '\\' && s[1])
			*to++ = *++s;
		else if (quote ? *s == quote : *s == '"' || *s == '\'')
			quote = quote ? 0 : *s;
		else
			*to++ = *s;
	}
	*at = s + !!*s;
	*to = 0;
	return word;
}

static void expand(const char *word, char ***words, int *n, int deep)
{
	int fd = *word == '@' ? open(word + 1, O_RDONLY | O_CLOEXEC) : -1;
	char *whole, *s;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || S_ISDIR(st.st_mode)) {
		add(word, words, n);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (deep == MOST_DEEP)
		give_up("%s: too many files of options in each other", word);
	whole = read_all(fd, word + 1);
	close(fd);
	for (s = whole; (word = next_word(&s));)
		expand(word, words, n, deep + 1);
	free(whole);
}

void expand_word(const char *word, char ***words, int *n)
{
	expand(word, words, n, 0);
}
