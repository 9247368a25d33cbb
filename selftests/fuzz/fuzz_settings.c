// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of devices and what may follow them, as in HAMLYN_DEVICE: what is taken is what
 * was said, and nothing is made under another name.
 */
#include <ctype.h>
#include <sys/stat.h>

#include "fuzz_device.h"

/* With what reads a size, which is no function of the library's */
#define h__shm_parse_spec settings_parse_spec
#include "embedded/shm_spec.c"

static uint64_t unit_of(char c)
{
	switch (toupper((unsigned char)c)) {
	case 'K':
		return 1ull << 10;
	case 'M':
		return 1ull << 20;
	case 'G':
		return 1ull << 30;
	}
	return 0;
}

/* "size=": what the digits and the unit say, rounded up to pages. */
static void check_size(const char *text)
{
	__uint128_t said = 0;
	size_t zeros = strspn(text, "0"), digits = strspn(text, "0123456789"), i;
	u64 size = 0;

	if (parse_size(text, &size))
		return;
	MUST(digits && digits - zeros <= 20);
	for (i = zeros; i < digits; i++)
		said = said * 10 + (unsigned char)(text[i] - '0');
	if (text[digits]) {
		MUST(unit_of(text[digits]) && !text[digits + 1]);
		said *= unit_of(text[digits]);
	}
	MUST(said >= SHM_MIN_SIZE && said <= SHM_MAX_SIZE);
	MUST(size >= said && size - said < SHM_PAGE && !(size % SHM_PAGE));
}

static void check_spec(const char *spec)
{
	char file[128], prefix[32];
	struct shm_options o;
	size_t n, i;

	memset(file, 1, sizeof(file));
	if (h__shm_parse_spec(spec, 1000, file, sizeof(file), &o))
		return;
	MUST(memchr(file, 0, sizeof(file)));
	snprintf(prefix, sizeof(prefix), "hamlyn-1000-");
	MUST(!strncmp(file, prefix, strlen(prefix)));
	n = strcspn(spec, ",");
	MUST(n && n <= SHM_NAME_CHARS && !strncmp(file + strlen(prefix), spec, n));
	MUST(strlen(file) == strlen(prefix) + n);
	for (i = 0; file[i]; i++)
		MUST(isalnum((unsigned char)file[i]) || strchr("._-", file[i]));
	MUST(o.size >= SHM_MIN_SIZE && o.size <= SHM_MAX_SIZE);
}

/* Whole devices: only names that can be opened cheaply, and are nobody else's. */
static void open_it(char *name)
{
	struct h_dev *dev = NULL;
	char own[160];
	int err;

	if (strncmp(name, "shm:", 4)) {
		/* No other device is there, or is to be touched. */
		if (!strncmp(name, "/dev/hamlyn", 11))
			return;
		MUST(h_open(name, &dev) && !dev);
		return;
	}
	snprintf(own, sizeof(own), "shm:fuzz-settings-%d,%s", getpid(), name + 4);
	if (strstr(own, "size=") || strstr(own, "huge"))
		return;
	setenv("HAMLYN_DEVICE", own, 1);
	err = h_open(NULL, &dev);
	MUST(!err == !!dev);
	if (dev)
		MUST(h_dev_is_embedded(dev) && !strcmp(h_dev_name(dev), own));
	h_close(dev);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	uint8_t how = fuzz_u8(&f);
	char *text = fuzz_text(&f);

	switch (how & 3) {
	case 0:
		check_size(text);
		break;
	case 1:
		open_it(text);
		break;
	default:
		check_spec(text);
	}
	free(text);
	return 0;
}
