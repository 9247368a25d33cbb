// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions that have an operand in memory: its size, and whether it is written. What is
 * not in these tables is left plain, which costs time, not correctness: a size that is too
 * small, or a store that is taken for a load, would be an access that nobody has checked.
 * selftests/tempest-cc/forms.py has the processor itself tell whether they are right.
 */
#include <string.h>

#include "insn.h"

/**
 * enum width - where the size of an operand in memory stands
 * @W_SUFFIX: the last letter, or else the general register beside it
 * @W_VECTOR: as wide as the widest vector register
 * @W_HALF, @W_QUARTER, @W_EIGHTH: a part of that
 * @W_FIXED: a number of bytes of its own
 */
enum width { W_SUFFIX, W_VECTOR, W_HALF, W_QUARTER, W_EIGHTH, W_FIXED };

/**
 * enum deed - what is done with the operand in memory
 * @READ: it is read, wherever it stands
 * @STORE: it is written where it stands last, else read
 * @WRITE: it is written
 */
enum deed { READ, STORE, WRITE };

struct form {
	const char *names;
	enum deed deed;
	enum width width;
	int size;
	bool aligned;
};

/* Of general registers, without their suffix */
static const struct form general[] = {
	{ " mov add sub and or xor xadd shl sal shr sar rol ror shld shrd movbe cmpxchg "
	  "movnti ", STORE, W_SUFFIX, 0, false },
	{ " cmp test imul mul div idiv bsf bsr popcnt lzcnt tzcnt andn bextr blsi blsr "
	  "blsmsk sarx shlx shrx rorx mulx pdep pext bzhi ", READ, W_SUFFIX, 0, false },
	{ " inc dec neg not xchg ", WRITE, W_SUFFIX, 0, false },
	{ " cmpxchg8b ", WRITE, W_FIXED, 8, false },
	{ " cmpxchg16b ", WRITE, W_FIXED, 16, true },
};

/* Of vectors, without a "v" in front */
static const struct form vector[] = {
	{ " movups movupd movdqu movdqu8 movdqu16 movdqu32 movdqu64 ", STORE, W_VECTOR, 0, false },
	{ " movaps movapd movdqa movdqa32 movdqa64 movntps movntpd movntdq movntdqa ",
	  STORE, W_VECTOR, 0, true },
	{ " movss movd ", STORE, W_FIXED, 4, false },
	{ " movsd movq movlps movhps movlpd movhpd ", STORE, W_FIXED, 8, false },
	{ " pextrb ", STORE, W_FIXED, 1, false },
	{ " pextrw ", STORE, W_FIXED, 2, false },
	{ " pextrd extractps ", STORE, W_FIXED, 4, false },
	{ " pextrq ", STORE, W_FIXED, 8, false },
	{ " extractf128 extracti128 ", STORE, W_FIXED, 16, false },
	{ " pinsrb pbroadcastb ", READ, W_FIXED, 1, false },
	{ " pinsrw pbroadcastw ", READ, W_FIXED, 2, false },
	{ " pinsrd insertps pbroadcastd broadcastss ", READ, W_FIXED, 4, false },
	{ " pinsrq pbroadcastq broadcastsd ", READ, W_FIXED, 8, false },
	{ " insertf128 inserti128 broadcastf128 broadcasti128 ", READ, W_FIXED, 16, false },
	{ " addss subss mulss divss minss maxss sqrtss rsqrtss rcpss comiss ucomiss roundss "
	  "cmpss cvtss2sd cvtss2si cvttss2si ", READ, W_FIXED, 4, false },
	{ " addsd subsd mulsd divsd minsd maxsd sqrtsd comisd ucomisd roundsd cmpsd cvtsd2ss "
	  "cvtsd2si cvttsd2si ", READ, W_FIXED, 8, false },
	{ " cvtss2sil cvttss2sil cvtss2siq cvttss2siq ", READ, W_FIXED, 4, false },
	{ " cvtsd2sil cvttsd2sil cvtsd2siq cvttsd2siq ", READ, W_FIXED, 8, false },
	{ " cvtsi2ssl cvtsi2sdl ", READ, W_FIXED, 4, false },
	{ " cvtsi2ssq cvtsi2sdq ", READ, W_FIXED, 8, false },
	/* Counts of shifts are of 16 bytes, whatever is shifted. */
	{ " psllw pslld psllq psrlw psrld psrlq psraw psrad ", READ, W_FIXED, 16, false },
	{ " addps subps mulps divps minps maxps sqrtps rsqrtps rcpps andps andnps orps xorps "
	  "unpcklps unpckhps shufps cmpps haddps hsubps addsubps dpps blendps blendvps roundps "
	  "addpd subpd mulpd divpd minpd maxpd sqrtpd andpd andnpd orpd xorpd unpcklpd unpckhpd "
	  "shufpd cmppd haddpd hsubpd addsubpd dppd blendpd blendvpd roundpd movshdup movsldup "
	  "cvtdq2ps cvtps2dq cvttps2dq lddqu permilps permilpd testps testpd ",
	  READ, W_VECTOR, 0, false },
	{ " paddb paddw paddd paddq paddsb paddsw paddusb paddusw psubb psubw psubd psubq psubsb "
	  "psubsw psubusb psubusw pmullw pmulld pmulhw pmulhuw pmulhrsw pmuludq pmuldq pmaddwd "
	  "pmaddubsw psadbw pavgb pavgw pminub pminuw pminud pminsb pminsw pminsd pmaxub pmaxuw "
	  "pmaxud pmaxsb pmaxsw pmaxsd pcmpeqb pcmpeqw pcmpeqd pcmpeqq pcmpgtb pcmpgtw pcmpgtd "
	  "pcmpgtq pand pandn por pxor packsswb packssdw packuswb packusdw punpcklbw punpcklwd "
	  "punpckldq punpcklqdq punpckhbw punpckhwd punpckhdq punpckhqdq pshufd pshufhw pshuflw "
	  "pshufb pabsb pabsw pabsd psignb psignw psignd phaddw phaddd phaddsw phsubw phsubd "
	  "palignr pblendw pblendvb pblendd ptest mpsadbw phminposuw perm2f128 perm2i128 permd "
	  "permq permps permpd psllvd psllvq psrlvd psrlvq psravd aesenc aesdec aesenclast "
	  "aesdeclast aesimc aeskeygenassist pclmulqdq ", READ, W_VECTOR, 0, false },
	{ " cvtpd2ps cvtpd2dq cvttpd2dq cvtpd2psx cvtpd2dqx cvttpd2dqx ",
	  READ, W_FIXED, 16, false },
	{ " cvtpd2psy cvtpd2dqy cvttpd2dqy ", READ, W_FIXED, 32, false },
	{ " cvtps2pd cvtdq2pd cvtph2ps pmovzxbw pmovzxwd pmovzxdq pmovsxbw pmovsxwd pmovsxdq ",
	  READ, W_HALF, 0, false },
	{ " pmovzxbd pmovzxwq pmovsxbd pmovsxwq ", READ, W_QUARTER, 0, false },
	{ " pmovzxbq pmovsxbq ", READ, W_EIGHTH, 0, false },
};

/* Of the x87 */
static const struct form stack[] = {
	{ " flds fadds fsubs fsubrs fmuls fdivs fdivrs fcoms fcomps fildl fiaddl fisubl "
	  "fisubrl fimull fidivl fidivrl ficoml ", READ, W_FIXED, 4, false },
	{ " fldl faddl fsubl fsubrl fmull fdivl fdivrl fcoml fcompl fildll fildq ",
	  READ, W_FIXED, 8, false },
	{ " filds fiadds fisubs fisubrs fimuls fidivs fldcw ", READ, W_FIXED, 2, false },
	{ " fldt ", READ, W_FIXED, 10, false },
	{ " fsts fstps fistl fistpl fisttpl ", WRITE, W_FIXED, 4, false },
	{ " fstl fstpl fistpll fistpq fisttpll fisttpq ", WRITE, W_FIXED, 8, false },
	{ " fists fistps fisttps fnstcw fnstsw ", WRITE, W_FIXED, 2, false },
	{ " fstpt ", WRITE, W_FIXED, 10, false },
};

#define TABLE(t) t, sizeof(t) / sizeof((t)[0])

static const struct form *find(const struct form *forms, size_t n, const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (in_list(forms[i].names, name, length))
			return &forms[i];
	return NULL;
}

static int suffix_size(char c)
{
	return c == 'b' ? 1 : c == 'w' ? 2 : c == 'l' ? 4 : c == 'q' ? 8 : 0;
}

/* Bytes of a general register: 0 for others */
static int general_size(const struct operand *o)
{
	static const char *const names[] = {
		" %al %bl %cl %dl %ah %bh %ch %dh %sil %dil %bpl %spl %r8b %r9b %r10b %r11b "
		"%r12b %r13b %r14b %r15b ",
		" %ax %bx %cx %dx %si %di %bp %sp %r8w %r9w %r10w %r11w %r12w %r13w %r14w %r15w ",
		" %eax %ebx %ecx %edx %esi %edi %ebp %esp %r8d %r9d %r10d %r11d %r12d %r13d "
		"%r14d %r15d ",
		" %rax %rbx %rcx %rdx %rsi %rdi %rbp %rsp %r8 %r9 %r10 %r11 %r12 %r13 %r14 %r15 ",
	};
	size_t i;

	for (i = 0; i < 4; i++)
		if (o->length && *o->at == '%' && in_list(names[i], o->at, o->length))
			return 1 << i;
	return 0;
}

static int vector_size(const struct operand *o)
{
	if (o->length < 5 || *o->at != '%')
		return 0;
	return starts(o->at, "%xmm") ? 16 : starts(o->at, "%ymm") ? 32 :
	       starts(o->at, "%zmm") ? 64 : 0;
}

static int widest(const struct line *line, int (*size)(const struct operand *))
{
	int i, most = 0;

	for (i = 0; i < line->n_operands; i++)
		if (size(&line->operands[i]) > most)
			most = size(&line->operands[i]);
	return most;
}

int insn_memory(const struct line *line)
{
	int i, found = -1;

	for (i = 0; i < line->n_operands; i++) {
		const struct operand *o = &line->operands[i];

		if (*o->at == '%' && !operand_has(o, ":"))
			continue;
		if (*o->at == '$')
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* An address that is made of registers of 64 bits, and neither a stack's nor a segment's */
static const char *address(const struct operand *o)
{
	if (*o->at == '*')
		return "call or jump through memory";
	if (operand_has(o, ":"))
		return "segment register";
	if (!operand_has(o, "("))
		return "absolute address";
	if (operand_has(o, "{"))
		return "mask or broadcast";
	if (operand_has(o, "%xmm") || operand_has(o, "%ymm") || operand_has(o, "%zmm"))
		return "gather or scatter";
	if (operand_has(o, "(%e") || operand_has(o, ",%e") || operand_has(o, "d,") ||
	    operand_has(o, "d)"))
		return "address of 32 bits";
	return NULL;
}

static bool writes(const struct form *form, const struct line *line, const struct access *access)
{
	bool last = access->operand == line->n_operands - 1;

	return form->deed == WRITE || (form->deed == STORE && last);
}

static const char *apply(const struct form *form, const struct line *line, struct access *access,
			 bool vex)
{
	int vector_bytes = widest(line, vector_size);

	switch (form->width) {
	case W_FIXED:
		access->size = form->size;
		break;
	case W_SUFFIX:
		access->size = widest(line, general_size);
		break;
	default:
		access->size = vector_bytes >> (form->width - W_VECTOR);
	}
	if (!access->size)
		return "size unknown";
	access->write = writes(form, line, access);
	/* Without VEX, SSE's operands that are not said to be unaligned are aligned. */
	access->aligned = form->aligned ||
			  (!vex && form->width == W_VECTOR && form->deed == READ &&
			   strcmp(line->name, "lddqu"));
	return NULL;
}

/* setcc, cmovcc, movzbl and their like, which are families */
static const char *family(const struct line *line, struct access *access)
{
	const char *name = line->name;
	size_t n = strlen(name);

	if (n == 6 && (starts(name, "movz") || starts(name, "movs"))) {
		access->size = suffix_size(name[4]);
		return access->size && suffix_size(name[5]) > access->size ?
		       NULL : "unknown instruction";
	}
	if (starts(name, "set")) {
		access->size = 1;
		access->write = true;
		return NULL;
	}
	if (starts(name, "cmov")) {
		access->size = widest(line, general_size);
		return access->size ? NULL : "size unknown";
	}
	return "unknown instruction";
}

/* Fused multiply and add: their last letters tell. */
static bool fused(const char *name, int vector_bytes, struct access *access)
{
	size_t n = strlen(name);

	if (n < 10 || (!starts(name, "vfmadd") && !starts(name, "vfmsub") &&
		       !starts(name, "vfnmadd") && !starts(name, "vfnmsub")))
		return false;
	access->size = !strcmp(name + n - 2, "ss") ? 4 : !strcmp(name + n - 2, "sd") ? 8 :
		       name[n - 2] == 'p' ? vector_bytes : 0;
	return access->size != 0;
}

/* Comparisons have their condition in their name: cmpltps. */
static const struct form *comparison(const char *name)
{
	size_t n = strlen(name);
	char whole[8] = "cmp";

	if (n < 7 || !starts(name, "cmp"))
		return NULL;
	memcpy(whole + 3, name + n - 2, 3);
	return find(TABLE(vector), whole, 5);
}

/* Its name does not say what it is: AVX-512 has wider ones of the same name. */
static bool ambiguous(const struct line *line)
{
	return in_list(" vcvtpd2ps vcvtpd2dq vcvttpd2dq ", line->name, strlen(line->name)) ||
	       (starts(line->name, "vps") && *line->operands[0].at == '$' &&
		(starts(line->name + 3, "ll") || starts(line->name + 3, "rl") ||
		 starts(line->name + 3, "ra")));
}

static const struct form *vector_form(const char *name)
{
	const struct form *form = find(TABLE(vector), name, strlen(name));

	return form ? form : comparison(name);
}

static bool shifts(const struct line *line)
{
	return in_list(" shl sal shr sar rol ror ", line->name, strlen(line->name));
}

/* mov, add, ... with the size as the last letter, or without: then a register has it. */
static const char *general_access(const struct line *line, struct access *access)
{
	size_t n = strlen(line->name);
	const struct form *form = find(TABLE(general), line->name, n);

	/* The register of a shift is its count. */
	if (form && line->n_operands == 2 && operand_is(&line->operands[0], "%cl") &&
	    shifts(line))
		return "size unknown";
	if (form)
		return apply(form, line, access, false);
	form = find(TABLE(general), line->name, n - 1);
	if (!form || form->width != W_SUFFIX || !suffix_size(line->name[n - 1]))
		return family(line, access);
	access->size = suffix_size(line->name[n - 1]);
	access->write = writes(form, line, access);
	return NULL;
}

/* Bits that a register numbers are anywhere; that an immediate does, in the operand. */
static const char *bit_access(const struct line *line, struct access *access)
{
	const char *name = line->name;
	size_t n = strlen(name);

	if (n < 2 || name[0] != 'b' || name[1] != 't' || n > 4 || *line->operands[0].at != '$')
		return "bit string";
	access->size = suffix_size(name[n - 1]);
	access->write = n == 4;
	return access->size ? NULL : "size unknown";
}

const char *insn_access(const struct line *line, struct access *access)
{
	const struct form *form;
	bool vex = line->name[0] == 'v';
	const char *why;
	int i;

	*access = (struct access){ .operand = insn_memory(line) };
	why = address(&line->operands[access->operand]);
	if (why)
		return why;
	for (i = 0; i < line->n_operands; i++)
		if (operand_has(&line->operands[i], "{"))
			return "mask or broadcast";
	if (line->name[0] == 'b' && line->name[1] == 't')
		return bit_access(line, access);
	if (line->name[0] == 'f') {
		form = find(TABLE(stack), line->name, strlen(line->name));
		return form ? apply(form, line, access, false) : "unknown instruction";
	}
	/* movq, movd and movsd are two instructions each: of vectors, and of others. */
	if (widest(line, vector_size)) {
		if (ambiguous(line))
			return "size unknown";
		form = vector_form(line->name + vex);
		if (form)
			return apply(form, line, access, vex);
		return fused(line->name, widest(line, vector_size), access) ? NULL :
									     "unknown instruction";
	}
	/* From memory into a general register */
	form = vector_form(line->name + vex);
	if (form && form->width == W_FIXED && starts(line->name + vex, "cvt"))
		return apply(form, line, access, vex);
	return general_access(line, access);
}

static bool is(const struct line *line, const char *list)
{
	return in_list(list, line->name, strlen(line->name));
}

/* The name, or it with a suffix. */
static bool is_general(const struct line *line, const char *list)
{
	size_t n = strlen(line->name);

	return in_list(list, line->name, n) ||
	       (n > 1 && suffix_size(line->name[n - 1]) && in_list(list, line->name, n - 1));
}

bool insn_reads_flags(const struct line *line)
{
	const char *name = line->name;

	if (name[0] == 'j')
		return strcmp(name, "jmp") && strcmp(name, "jmpq");
	return starts(name, "set") || starts(name, "cmov") || starts(name, "fcmov") ||
	       starts(name, "loop") || is(line, " lahf pushf pushfq pushfw cmc into ") ||
	       is_general(line, " adc sbb rcl rcr adcx adox ");
}

/* Shifts by a register may be by nothing, rotations and inc leave some, bt leaves ZF. */
bool insn_kills_flags(const struct line *line)
{
	if (is(line, " comiss ucomiss comisd ucomisd vcomiss vucomiss vcomisd vucomisd ptest "
		     "vptest call callq ret retq ud2 hlt "))
		return true;
	if (is_general(line, " shl sal shr sar shld shrd "))
		return line->n_operands && *line->operands[0].at == '$';
	return is_general(line, " add sub cmp test and or xor neg imul mul div idiv xadd cmpxchg "
				"bsf bsr popcnt lzcnt tzcnt andn bextr blsi blsr blsmsk bzhi ");
}
