// SPDX-License-Identifier: GPL-2.0-only
/* What a figure was measured on: without this it means nothing. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/machine.h"

static void copy_value(char *to, size_t size, const char *line)
{
	const char *value = strchr(line, ':');

	if (!value)
		return;
	value += strspn(value, ": \t");
	snprintf(to, size, "%.*s", (int)strcspn(value, "\n"), value);
}

/* The first processor's lines; all others repeat them. */
static void look_at_cpu(struct machine *machine)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[4096];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file) && line[0] != '\n') {
		if (!strncmp(line, "model name", 10))
			copy_value(machine->cpu, sizeof(machine->cpu), line);
		if (!strncmp(line, "flags", 5) && strstr(line, " hypervisor"))
			machine->virtual = true;
	}
	fclose(file);
}

void machine_look(struct machine *machine)
{
	struct utsname names;

	*machine = (struct machine){ .cpu = "unknown processor" };
	look_at_cpu(machine);
	if (!uname(&names))
		snprintf(machine->kernel, sizeof(machine->kernel), "%.40s %.80s",
			 names.sysname, names.release);
	machine->cores = sysconf(_SC_NPROCESSORS_ONLN);
}
