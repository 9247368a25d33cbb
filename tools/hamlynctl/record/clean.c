// SPDX-License-Identifier: GPL-2.0-only
/* Text from the kernel, without what a terminal would obey. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/output.h"

/* Bytes of the UTF-8 character at @text; 0: it is none. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
	static const unsigned int lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t i, length = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 :
		*text >> 3 == 30 ? 4 : 0;
	unsigned int code;

	if (length < 2 || length > left)
		return length == 1;
	code = *text & (0x7fU >> length);
	for (i = 1; i < length; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < lowest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

char *clean_utf8(const char *text, size_t length)
{
	const unsigned char *bytes = (const void *)text;
	char *clean = must_alloc(malloc(3 * length + 1)), *to = clean;
	size_t n;

	for (; length; bytes += n, length -= n) {
		n = utf8_length(bytes, length);
		if (n) {
			memcpy(to, bytes, n);
			to += n;
		} else {
			n = 1;
			memcpy(to, "\xef\xbf\xbd", 3);	/* U+FFFD */
			to += 3;
		}
	}
	*to = 0;
	return clean;
}

/* Also C1 controls, which some terminals obey. */
static bool obeyed(const unsigned char *bytes)
{
	return *bytes < ' ' || *bytes == 0x7f || (*bytes == 0xc2 && bytes[1] < 0xa0);
}

/* As \x1b what is no text, is obeyed, or one of @marks. */
static char *escape(const char *text, size_t length, const char *marks)
{
	const unsigned char *bytes = (const void *)text;
	char *clean = must_alloc(malloc(4 * length + 1)), *to = clean;
	size_t n;

	for (; length; bytes += n, length -= n) {
		n = utf8_length(bytes, length);
		if (!n || obeyed(bytes) || strchr(marks, *bytes)) {
			n = 1;
			to += sprintf(to, "\\x%02x", *bytes);
		} else {
			memcpy(to, bytes, n);
			to += n;
		}
	}
	*to = 0;
	return clean;
}

/* Blanks would make another column. */
char *clean_text(const char *text, size_t length)
{
	return escape(text, length, "\\ ");
}

char *clean_sentence(const char *text, size_t length)
{
	return escape(text, length, "\\");
}
