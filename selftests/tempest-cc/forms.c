// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does each instruction that hamlyn-tempest-cc checks reach just as many bytes as it takes it
 * to, and write only if it is taken to? The processor tells: with a page behind that is not
 * there, and on one that may only be read.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	4096
#define MOST	64

/* From forms.py: @second: how far from the first byte the other look is, 0: there is none */
struct form {
	void (*run)(void);
	const char *name;
	int second;
	int write;
};

extern const struct form forms[];
extern const int n_forms;

static sigjmp_buf back;
static char *page;

static void on_signal(int sig)
{
	siglongjmp(back, sig);
}

/* Return: 0, or the signal that it was ended by. Its registers are small numbers. */
static int run(const struct form *form, char *at)
{
	static char saved[512] __attribute__((aligned(16)));
	int sig;

	sig = sigsetjmp(back, 1);
	if (!sig) {
		__asm__ volatile("fxsave %0" : "=m"(saved));
		__asm__ volatile("call *%[f]"
			: "+D"(at)
			: [f] "S"(form->run), "a"(0), "d"(0), "c"(1)
			: "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
			  "cc", "xmm0", "xmm1", "xmm2");
	}
	__asm__ volatile("fxrstor %0" : : "m"(saved));
	return sig == SIGFPE ? 0 : sig;
}

static void fill(void)
{
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memset(page, 1, PAGE);
}

static int size_of(const struct form *form)
{
	int n;

	for (n = 1; n <= MOST; n++) {
		fill();
		if (!run(form, page + PAGE - n))
			return n;
	}
	return 0;
}

static const char *verdict(const struct form *form)
{
	static char text[100];
	int size = size_of(form);
	bool write, aligned;

	if (!size)
		return "reaches more than 64 bytes, or nothing";
	fill();
	aligned = run(form, page + PAGE - size - 1);
	fill();
	mprotect(page, PAGE, PROT_READ);
	write = run(form, page + PAGE - size) == SIGSEGV;
	if (write != form->write)
		return write ? "writes" : "does not write";
	if (form->second ? size != form->second + 1 : size > 1 && !aligned) {
		snprintf(text, sizeof(text), "reaches %d bytes%s; the second look is at %d", size,
			 aligned ? ", aligned" : "", form->second);
		return text;
	}
	return NULL;
}

int main(void)
{
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	int i, wrong = 0, unknown = 0;
	const char *why;

	page = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || sigaltstack(&other, NULL))
		return 1;
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGILL, &act, NULL);
	sigaction(SIGFPE, &act, NULL);
	for (i = 0; i < n_forms; i++) {
		fill();
		if (run(&forms[i], page) == SIGILL) {
			unknown++;
			continue;
		}
		why = verdict(&forms[i]);
		if (why) {
			printf("# %s: %s\n", forms[i].name, why);
			wrong++;
		}
	}
	printf("# %d forms, %d wrong, %d that this processor does not know\n", n_forms, wrong,
	       unknown);
	return wrong || unknown == n_forms;
}
