// SPDX-License-Identifier: GPL-2.0-only
/* Numbers in the order of the host, then texts, each ended by 0. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts/link.h"
#include "message.h"
#include "hosts/start.h"

/* Variables that go along: those of our own library */
#define PREFIX	"HAMLYN_"

struct numbers {
	int32_t total;
	int32_t first;
	int32_t processes;
	int32_t stdin_rank;
	int32_t same_addresses;
	int32_t has_device;
	int32_t variables;
	int32_t words;
};

struct packed {
	char *data;
	size_t len;
	size_t room;
};

static void add(struct packed *packed, const void *data, size_t n)
{
	if (packed->room - packed->len < n) {
		packed->room = (packed->len + n) * 2;
		packed->data = enlarge(packed->data, packed->room);
	}
	memcpy(packed->data + packed->len, data, n);
	packed->len += n;
}

static void add_text(struct packed *packed, const char *text)
{
	add(packed, text, strlen(text) + 1);
}

static bool goes_along(const char *variable)
{
	return !strncmp(variable, PREFIX, strlen(PREFIX));
}

static int count_variables(void)
{
	char **variable;
	int n = 0;

	for (variable = environ; *variable; variable++)
		n += goes_along(*variable);
	return n;
}

static int count_words(char **command)
{
	int n = 0;

	while (command[n])
		n++;
	return n;
}

char *start_pack(const struct options *options, int first, int processes, size_t *n)
{
	char *folder = getcwd(NULL, 0);
	struct numbers numbers = {
		.total = options->processes, .first = first, .processes = processes,
		.stdin_rank = options->stdin_rank, .same_addresses = options->same_addresses,
		.has_device = !!options->device, .variables = count_variables(),
		.words = count_words(options->command),
	};
	struct packed packed = { 0 };
	char **text;

	add(&packed, &numbers, sizeof(numbers));
	/* A folder that is gone is no reason not to run elsewhere */
	add_text(&packed, folder ? folder : "/");
	add_text(&packed, options->device ? options->device : "");
	for (text = environ; *text; text++)
		if (goes_along(*text))
			add_text(&packed, *text);
	for (text = options->command; *text; text++)
		add_text(&packed, *text);
	free(folder);
	*n = packed.len;
	return packed.data;
}

static bool are_numbers(const struct numbers *numbers, size_t n)
{
	return numbers->total >= 1 && numbers->total <= MAX_PROCESSES &&
		numbers->processes >= 1 && numbers->processes <= numbers->total &&
		numbers->first >= 0 && numbers->first <= numbers->total - numbers->processes &&
		numbers->variables >= 0 && (size_t)numbers->variables <= n &&
		numbers->words >= 1 && (size_t)numbers->words <= n;
}

/* The next text, or NULL at the end */
static char *next_text(char **at, const char *end)
{
	char *text = *at;

	if (text == end)
		return NULL;
	*at += strlen(text) + 1;
	return text;
}

static int take_texts(struct start *start, const struct numbers *numbers, const char *end)
{
	int i, n = numbers->variables;
	char *at = start->text;

	start->folder = next_text(&at, end);
	start->options.device = next_text(&at, end);
	start->words = allocate((size_t)n + (size_t)numbers->words + 2, sizeof(*start->words));
	for (i = 0; i < n; i++)
		start->words[i] = next_text(&at, end);
	for (i = 0; i < numbers->words; i++)
		start->words[n + 1 + i] = next_text(&at, end);
	if (at != end || !start->words[n + numbers->words])
		return -1;
	if (!numbers->has_device)
		start->options.device = NULL;
	start->variables = start->words;
	start->options.command = start->words + n + 1;
	return 0;
}

int start_unpack(struct start *start, const char *data, size_t n)
{
	struct numbers numbers;

	memset(start, 0, sizeof(*start));
	if (n <= sizeof(numbers) || data[n - 1])
		return -1;
	memcpy(&numbers, data, sizeof(numbers));
	n -= sizeof(numbers);
	if (!are_numbers(&numbers, n))
		return -1;
	start->options.processes = numbers.total;
	start->options.stdin_rank = numbers.stdin_rank;
	start->options.same_addresses = numbers.same_addresses;
	start->first = numbers.first;
	start->processes = numbers.processes;
	start->text = allocate(n, 1);
	memcpy(start->text, data + sizeof(numbers), n);
	return take_texts(start, &numbers, start->text + n);
}

void start_free(struct start *start)
{
	free(start->text);
	free(start->words);
}
