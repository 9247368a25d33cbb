// SPDX-License-Identifier: GPL-2.0-only
/* Instructions executed out of line do what they do in ordinary memory. */
#include <signal.h>
#include <string.h>

#include "trap/decode.h"
#include "test.h"

#define BYTES	1024

/* rdi, r12 and r13 are the address, r8 is 2, rbx, rcx, rdx and rax as here. */
struct state {
	uint64_t rax, rcx, rdx, rbx;
	uint64_t flags;
	unsigned char vectors[4][32];
	unsigned char x87[16];
};

enum group { BASE, ALIGNED, SSE4, AVX, AVX2, FMA, BMI2, F16C, AVX512 };

struct form {
	const char *text;
	enum group group;
	void (*run)(void *memory, struct state *state);
};

/* State in, the instruction, state out; in low registers as the vectors are. */
#define BEFORE	\
	"leaq -256(%%rsp), %%rsp\n\t" "movq %0, %%rdi\n\tmovq %1, %%rsi\n\tpushq %%rsi\n\t" \
	"movq %%rdi, %%r12\n\tmovq %%rdi, %%r13\n\tmovl $2, %%r8d\n\tfninit\n\tfld1\n\tfldpi\n\t" \
	"movups 40(%%rsi), %%xmm0\n\tmovups 72(%%rsi), %%xmm1\n\tmovups 104(%%rsi), %%xmm2\n\t" \
	"movups 136(%%rsi), %%xmm3\n\t" \
	"movq (%%rsi), %%rax\n\tmovq 8(%%rsi), %%rcx\n\tmovq 16(%%rsi), %%rdx\n\t" \
	"movq 24(%%rsi), %%rbx\n\tcmpq %%rcx, %%rax\n\t"
#define AFTER	\
	"\n\tpushfq\n\tpopq %%r9\n\tpopq %%rsi\n\tcld\n\t" \
	"movq %%rax, (%%rsi)\n\tmovq %%rcx, 8(%%rsi)\n\tmovq %%rdx, 16(%%rsi)\n\t" \
	"movq %%rbx, 24(%%rsi)\n\tmovq %%r9, 32(%%rsi)\n\t" \
	"movups %%xmm0, 40(%%rsi)\n\tmovups %%xmm1, 72(%%rsi)\n\tmovups %%xmm2, 104(%%rsi)\n\t" \
	"movups %%xmm3, 136(%%rsi)\n\tfstpt 168(%%rsi)\n\tfninit\n\tleaq 256(%%rsp), %%rsp"
#define CLOBBERS	\
	"rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r12", "r13", "xmm0", "xmm1", \
	"xmm2", "xmm3", "st", "st(1)", "st(2)", "st(3)", "cc", "memory"

#define FORM(number, group, text)	\
	static void form_##number(void *memory, struct state *state) \
	{ \
		__asm__ volatile(BEFORE text AFTER : : "r"(memory), "r"(state) : CLOBBERS); \
	}
#include "decoder_forms.h"
#undef FORM

#define FORM(number, group, text) { text, group, form_##number },
static const struct form forms[] = {
#include "decoder_forms.h"
};
#undef FORM

static bool supported(enum group group)
{
	switch (group) {
	case SSE4:
		return __builtin_cpu_supports("sse4.2");
	case AVX:
		return __builtin_cpu_supports("avx");
	case AVX2:
		return __builtin_cpu_supports("avx2");
	case FMA:
		return __builtin_cpu_supports("fma");
	case BMI2:
		return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi");
	case F16C:
		return __builtin_cpu_supports("f16c");
	case AVX512:
		return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi2");
	default:
		return true;
	}
}

static void fill(unsigned char *memory, struct state *state)
{
	uint32_t random = 7;

	for (int i = 0; i < BYTES; i++) {
		random = random * 1103515245 + 12345;
		memory[i] = random >> 16;
	}
	memset(state, 0, sizeof(*state));
	/* What xlat and divisions can do with */
	state->rax = 0x1234;
	state->rcx = 5;
	state->rbx = 0x0102030405060708;
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 32; j++)
			state->vectors[i][j] = 0x41 + 7 * i + j;
	}
}

/*
 * Of the last x87 instruction's address and operand AMD's processors keep nothing over a switch of
 * tasks or a signal: FIP, FCS, FOP, FDP and FDS say something else in each run.
 */
static void forget_pointers(const struct form *form, unsigned char *environment)
{
	if (!strncmp(form->text, "fnstenv", 7) || !strncmp(form->text, "fnsave", 6))
		memset(environment + 12, 0, 16);
	else if (!strncmp(form->text, "fxsave", 6))
		memset(environment + 6, 0, 18);
}

static void check_form(const struct form *form, unsigned char *segment, int offset)
{
	static unsigned char native[BYTES] __attribute__((aligned(64)));
	static unsigned char found[BYTES];
	struct state expected, state;
	unsigned char *const here = native + 256 + offset, *const there = segment + 256 + offset;

	fill(native, &expected);
	form->run(here, &expected);
	fill(found, &state);
	memcpy(segment, found, BYTES);
	form->run(there, &state);
	memcpy(found, segment, BYTES);
	forget_pointers(form, here);
	forget_pointers(form, found + 256 + offset);
	if (memcmp(found, native, BYTES))
		failed(__FILE__, __LINE__, "%s: other memory, at offset %d", form->text, offset);
	/* The address itself is what some have put into a register */
	if (memcmp(&expected, &state, sizeof(state)))
		failed(__FILE__, __LINE__, "%s: other registers, at offset %d", form->text, offset);
}

/* So mixed that nothing opens it; what the forms use is Writable. */
static void map_for_forms(void)
{
	for (int i = 0; i < 3; i++) {
		map_page(page_at(i), 0, TPPI_Blk_Writable);
		TPPI_change_blk_acc(page_at(i) + 2048, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	}
}

static void run_forms(int offset, bool aligned, int at)
{
	int number = 0;

	map_for_forms();
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!supported(forms[i].group) || (forms[i].group == ALIGNED && !aligned))
			continue;
		check_form(&forms[i], (unsigned char *)page_at(1) + at, offset);
		number++;
	}
	CHECK(number > 150);
}

static void aligned(void)
{
	run_forms(0, true, 0);
}

static void within_blocks(void)
{
	run_forms(3, false, 64);
}

static void across_blocks(void)
{
	run_forms(29, false, 128);
}

/* Part of the operand is on the page before. */
static void across_pages(void)
{
	run_forms(-3, false, -256);
}

/* ---- what is refused ---- */

static void gather(void *page)
{
	__asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvpxor %%ymm1, %%ymm1, %%ymm1\n\t"
			 "vpgatherdd %%ymm0, (%0,%%ymm1,4), %%ymm2"
			 : : "r"(page) : "xmm0", "xmm1", "xmm2", "memory");
}

static void other_segment(void *page)
{
	__asm__ volatile("movq %%fs:0, %%rax\n\tsubq %%rax, %0\n\tmovl %%fs:(%0), %%eax"
			 : "+r"(page) : : "rax", "memory");
}

static void jump_into(void *page)
{
	((void (*)(void))page)();
}

/* Where the processor cannot, there is nothing to refuse. */
static void refuses_gather(void)
{
	if (!__builtin_cpu_supports("avx2"))
		raise(SIGABRT);
	map_mixed(page_at(0));
	gather(page_at(0));
	failed(__FILE__, __LINE__, "it was executed");
}

static void refuses_segment(void)
{
	map_mixed(page_at(0));
	other_segment(page_at(0));
	failed(__FILE__, __LINE__, "it was executed");
}

static void refuses_code(void)
{
	map_mixed(page_at(0));
	jump_into(page_at(0));
	failed(__FILE__, __LINE__, "it was executed");
}

/* ---- sizes that only few processors can show ---- */

static const struct {
	const char *text;
	unsigned char code[12];
	unsigned int size;	/* 0: refused */
} sizes[] = {
	{ "vcvtdq2pd (%rdi), %ymm0", { 0xc5, 0xfe, 0xe6, 0x07 }, 16 },
	{ "vcvtdq2pd (%rdi), %zmm0", { 0x62, 0xf1, 0x7e, 0x48, 0xe6, 0x07 }, 32 },
	{ "vcvtqq2pd (%rdi), %zmm0", { 0x62, 0xf1, 0xfe, 0x48, 0xe6, 0x07 }, 64 },
	{ "vcvtqq2pd (%rdi){1to8}, %zmm0", { 0x62, 0xf1, 0xfe, 0x58, 0xe6, 0x07 }, 8 },
	{ "clwb (%rdi)", { 0x66, 0x0f, 0xae, 0x37 }, 1 },
	{ "clflushopt (%rdi)", { 0x66, 0x0f, 0xae, 0x3f }, 1 },
	{ "xsaveopt (%rdi)", { 0x0f, 0xae, 0x37 }, 0 },
	{ "xsave (%rdi)", { 0x0f, 0xae, 0x27 }, 0 },
	{ "vrcp14ps (%rdi), %zmm0", { 0x62, 0xf2, 0x7d, 0x48, 0x4c, 0x07 }, 64 },
	{ "ldtilecfg (%rdi)", { 0xc4, 0xe2, 0x78, 0x49, 0x07 }, 0 },
	{ "tileloadd (%rdi), %tmm0", { 0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x27 }, 0 },
};

static void operand_sizes(void)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ucontext_t context = { 0 };
		struct tempest_insn insn;

		context.uc_mcontext.gregs[REG_RIP] = (greg_t)sizes[i].code;
		if (tempest_decode(&context, &insn))
			insn.size = 0;
		if (insn.size != sizes[i].size)
			failed(__FILE__, __LINE__, "%s: %u bytes, not %u", sizes[i].text,
			       insn.size, sizes[i].size);
	}
}

const struct test tests[] = {
	{ "aligned", aligned, 0, 0, 0 },
	{ "within-blocks", within_blocks, 0, 0, 0 },
	{ "across-blocks", across_blocks, 0, 0, 0 },
	{ "across-pages", across_pages, 0, 0, 0 },
	{ "operand-sizes", operand_sizes, 0, 0, 0 },
	{ "refuses-gather", refuses_gather, .dies = SIGABRT },
	{ "refuses-segment", refuses_segment, .dies = SIGABRT },
	{ "refuses-code", refuses_code, .dies = SIGABRT },
	{ 0 }
};
