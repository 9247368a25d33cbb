// SPDX-License-Identifier: GPL-2.0-only
/* Text or JSON, from one list of fields. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <json-c/json.h>

#include "output.h"
#include "users.h"

#define LINE_WIDTH	80
#define INDENT		4
#define USER_NAME_MAX	32

/* ---- single values ------------------------------------------------------ */

bool attr_number(const struct nlattr *attr, uint64_t *number)
{
	switch (nla_len(attr)) {
	case sizeof(uint16_t):
		*number = nla_get_u16(attr);
		return true;
	case sizeof(uint32_t):
		*number = nla_get_u32(attr);
		return true;
	case sizeof(uint64_t):
		*number = nla_get_u64(attr);
		return true;
	}
	return false;
}

char *format_size(uint64_t number, char *text)
{
	static const char units[] = "KMGT";
	int unit = -1;

	while (number && !(number & 1023) && unit + 1 < (int)strlen(units)) {
		number >>= 10;
		unit++;
	}
	sprintf(text, "%" PRIu64 "%.*s", number, unit < 0 ? 0 : 1, unit < 0 ? "" : units + unit);
	return text;
}

char *format_user(uint32_t uid, char *text)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, USER_NAME_MAX + 1, "%s", user->pw_name);
	else
		snprintf(text, USER_NAME_MAX + 1, "%" PRIu32, uid);
	return text;
}

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

/* A field as it arrived. Text that lacks its NUL ends with its attribute. */
struct item {
	const struct field *field;
	bool here;
	uint64_t number;
	bool wide;		/* @number has 64 bits */
	const char *text;
	size_t length;
	struct nlattr *nest;
};

static int read_address(struct nlattr *attr, struct item *item)
{
	item->text = nla_data(attr);
	item->length = (size_t)nla_len(attr);
	if (item->length == 4 || item->length == 16)
		return STATUS_OK;
	return refused("the kernel's answer is malformed: %s has %zu bytes", item->field->name,
		       item->length);
}

static int read_user_map(struct nlattr *attr, struct item *item)
{
	item->text = nla_data(attr);
	item->length = (size_t)nla_len(attr) / sizeof(struct user_range);
	if (!((size_t)nla_len(attr) % sizeof(struct user_range)))
		return STATUS_OK;
	return refused("the kernel's answer is malformed: %s has %d bytes", item->field->name,
		       nla_len(attr));
}

static int read_item(const struct field *field, struct nlattr *const *attrs, struct item *item)
{
	struct nlattr *attr = attrs[field->attr];

	*item = (struct item){ .field = field, .here = attr };
	if (field->kind == FIELD_FLAG || field->kind == FIELD_SET) {
		item->number = item->here;
		item->here |= field->kind == FIELD_FLAG;
	} else if (!attr) {
		return 0;
	} else if (field->kind == FIELD_TEXT) {
		item->text = nla_data(attr);
		item->length = strnlen(item->text, (size_t)nla_len(attr));
	} else if (field->kind == FIELD_BYTES) {
		item->text = nla_data(attr);
		item->length = (size_t)nla_len(attr);
	} else if (field->kind == FIELD_ADDRESS) {
		return read_address(attr, item);
	} else if (field->kind == FIELD_USER_MAP) {
		return read_user_map(attr, item);
	} else if (field->kind == FIELD_NEST || field->kind == FIELD_PART) {
		item->nest = attr;
	} else if (!attr_number(attr, &item->number)) {
		return refused("the kernel's answer is malformed: %s has %d bytes", field->name,
			       nla_len(attr));
	} else {
		item->wide = nla_len(attr) == sizeof(uint64_t);
	}
	return STATUS_OK;
}

static char *hexadecimal(const struct item *item)
{
	char *text = must_alloc(calloc(1, 2 * item->length + 1));
	size_t i;

	for (i = 0; i < item->length; i++)
		sprintf(text + 2 * i, "%02x", (unsigned char)item->text[i]);
	return text;
}

static const char *format_address(const struct item *item, char *text)
{
	return inet_ntop(item->length == 4 ? AF_INET : AF_INET6, item->text, text,
			 INET6_ADDRSTRLEN);
}

static bool no_limit(const struct item *item)
{
	return item->number == (item->wide ? UINT64_MAX : UINT32_MAX);
}

static const char *word_of(const struct item *item)
{
	const char *const *names = item->field->names;
	uint64_t i;

	for (i = 0; i <= item->number; i++)
		if (!names[i])
			return NULL;
	return names[item->number];
}

static int parse_nest(const struct item *item, struct nlattr **attrs)
{
	if (nla_parse_nested(attrs, HAMLYN_A_MAX, item->nest, NULL) < 0)
		return refused("the kernel's answer is malformed: %s", item->field->name);
	return STATUS_OK;
}

/* ---- JSON --------------------------------------------------------------- */

static void add_member(struct json_object *object, const char *name, struct json_object *value)
{
	char key[32];
	size_t i;

	for (i = 0; name[i] && i < sizeof(key) - 1; i++)
		key[i] = name[i] == '-' ? '_' : name[i];
	key[i] = 0;
	if (json_object_object_add(object, key, value) < 0)
		must_alloc(NULL);
}

static struct json_object *json_text(const char *text, size_t length)
{
	char *clean = clean_utf8(text, length);
	struct json_object *value = must_alloc(json_object_new_string(clean));

	free(clean);
	return value;
}

static int json_fields(const struct field *fields, struct nlattr *const *attrs,
		       struct json_object **object);

static int json_nest(const struct item *item, struct json_object **value)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	return status ? status : json_fields(item->field->nested, attrs, value);
}

static int json_value(const struct item *item, struct json_object **value)
{
	char address[INET6_ADDRSTRLEN];
	const char *word;
	char *text;

	switch (item->field->kind) {
	case FIELD_BYTES:
		text = hexadecimal(item);
		*value = must_alloc(json_object_new_string(text));
		free(text);
		return STATUS_OK;
	case FIELD_USER_MAP:
		text = user_map_format(item->text, item->length);
		*value = must_alloc(json_object_new_string(text));
		free(text);
		return STATUS_OK;
	case FIELD_ADDRESS:
		*value = must_alloc(json_object_new_string(format_address(item, address)));
		return STATUS_OK;
	case FIELD_FLAG:
	case FIELD_SET:
		*value = must_alloc(json_object_new_boolean(item->number != 0));
		return STATUS_OK;
	case FIELD_TEXT:
		*value = json_text(item->text, item->length);
		return STATUS_OK;
	case FIELD_NEST:
		return json_nest(item, value);
	case FIELD_LIMIT:
		if (no_limit(item)) {
			*value = NULL;
			return STATUS_OK;
		}
		break;
	case FIELD_WORD:
		/* A number that has no word here is told as it is, by a newer kernel. */
		word = word_of(item);
		if (word) {
			*value = must_alloc(json_object_new_string(word));
			return STATUS_OK;
		}
		break;
	default:
		break;
	}
	*value = must_alloc(json_object_new_uint64(item->number));
	return STATUS_OK;
}

static void json_nic(struct json_object *object, uint64_t index)
{
	char name[32];

	snprintf(name, sizeof(name), "hamlyn%" PRIu64, index);
	add_member(object, "name", json_text(name, strlen(name)));
}

static void json_user(struct json_object *object, uint64_t uid)
{
	const struct passwd *user = getpwuid((uid_t)uid);

	if (user)
		add_member(object, "user", json_text(user->pw_name, strlen(user->pw_name)));
}

static int add_members(struct json_object *object, const struct field *fields,
		       struct nlattr *const *attrs);

static int add_part(struct json_object *object, const struct item *item)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	return status ? status : add_members(object, item->field->nested, attrs);
}

static int add_item(struct json_object *object, const struct item *item)
{
	struct json_object *value;
	int status;

	if (item->field->kind == FIELD_PART)
		return add_part(object, item);
	status = json_value(item, &value);
	if (status)
		return status;
	add_member(object, item->field->name, value);
	if (item->field->kind == FIELD_USER)
		json_user(object, item->number);
	if (item->field->kind == FIELD_NIC)
		json_nic(object, item->number);
	return STATUS_OK;
}

static int add_members(struct json_object *object, const struct field *fields,
		       struct nlattr *const *attrs)
{
	const struct field *field;
	struct item item;
	int status = STATUS_OK;

	for (field = fields; !status && field->name; field++) {
		status = read_item(field, attrs, &item);
		if (!status && item.here)
			status = add_item(object, &item);
	}
	return status;
}

static int json_fields(const struct field *fields, struct nlattr *const *attrs,
		       struct json_object **object)
{
	int status;

	*object = must_alloc(json_object_new_object());
	status = add_members(*object, fields, attrs);
	if (status) {
		json_object_put(*object);
		*object = NULL;
	}
	return status;
}

void output_json(const struct options *options, struct json_object *value)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= options->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED :
				   JSON_C_TO_STRING_PLAIN;
	puts(must_alloc((void *)(uintptr_t)json_object_to_json_string_ext(value, flags)));
	json_object_put(value);
}

/* ---- text --------------------------------------------------------------- */

static char *format_rate(uint64_t ppm, char *text)
{
	int length = sprintf(text, "%" PRIu64 ".%04" PRIu64, ppm / 10000, ppm % 10000);

	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	text[length++] = '%';
	text[length] = 0;
	return text;
}

/* As "key:3,bounds:1", without counters that are 0. */
static int print_nest(FILE *to, const struct item *item);

static int print_item(FILE *to, const struct item *item)
{
	uint64_t number = item->number;
	const char *word = NULL;
	char text[64];
	char *clean;

	if (!item->here) {
		fputc('-', to);
		return STATUS_OK;
	}
	switch (item->field->kind) {
	case FIELD_NEST:
		return print_nest(to, item);
	case FIELD_TEXT:
		clean = clean_text(item->text, item->length);
		fputs(*clean ? clean : "-", to);
		free(clean);
		return STATUS_OK;
	case FIELD_BYTES:
		clean = hexadecimal(item);
		fputs(*clean ? clean : "-", to);
		free(clean);
		return STATUS_OK;
	case FIELD_USER_MAP:
		clean = user_map_format(item->text, item->length);
		fputs(clean, to);
		free(clean);
		return STATUS_OK;
	case FIELD_LIMIT:
		word = no_limit(item) ? "unlimited" : format_size(number, text);
		break;
	case FIELD_SIZE:
		word = format_size(number, text);
		break;
	case FIELD_RATE:
		word = format_rate(number, text);
		break;
	case FIELD_USER:
		word = format_user((uint32_t)number, text);
		break;
	case FIELD_ADDRESS:
		word = format_address(item, text);
		break;
	case FIELD_FLAG:
	case FIELD_SET:
		word = number ? "yes" : "no";
		break;
	case FIELD_WORD:
		word = word_of(item);
		break;
	case FIELD_TIME:
		fprintf(to, "%" PRIu64 ".%09" PRIu64, number / 1000000000, number % 1000000000);
		return STATUS_OK;
	case FIELD_NIC:
		fprintf(to, "hamlyn%" PRIu64, number);
		return STATUS_OK;
	default:
		break;
	}
	if (word)
		fputs(word, to);
	else
		fprintf(to, "%" PRIu64, number);
	return STATUS_OK;
}

static int print_nest(FILE *to, const struct item *item)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	const struct field *field;
	const char *comma = "";
	struct item member;
	int status = parse_nest(item, attrs);

	for (field = item->field->nested; !status && field->name; field++) {
		status = read_item(field, attrs, &member);
		if (status || !member.here || (!member.number && field->kind == FIELD_NUMBER))
			continue;
		fprintf(to, "%s%s:", comma, field->name);
		status = print_item(to, &member);
		comma = ",";
	}
	if (!*comma)
		fputc('-', to);
	return status;
}

/* The text of an item; NULL after a failure. */
static char *item_text(const struct item *item)
{
	char *text = NULL;
	size_t size;
	FILE *to = must_alloc(open_memstream(&text, &size));
	int status = print_item(to, item);

	fclose(to);
	must_alloc(text);
	if (!status)
		return text;
	free(text);
	return NULL;
}

/* ---- paragraphs --------------------------------------------------------- */

struct paragraph {
	FILE *to;
	size_t column;
	bool wrap;
};

static void new_line(struct paragraph *p, int indent)
{
	fprintf(p->to, "\n%*s", indent, "");
	p->column = (size_t)indent;
}

static void add_pair(struct paragraph *p, const char *name, const char *text, int indent)
{
	size_t length = strlen(name) + 1 + strlen(text);

	if (p->wrap && p->column + 1 + length > LINE_WIDTH)
		new_line(p, indent);
	else if (p->column)
		p->column += (size_t)fprintf(p->to, " ");
	p->column += (size_t)fprintf(p->to, "%s%s%s", name, *name ? " " : "", text);
}

static int add_fields(struct paragraph *p, const struct field *fields,
		      struct nlattr *const *attrs, int indent);

/* A line of its own for the members of @item, if they are not the record's own. */
static int add_nest(struct paragraph *p, const struct item *item, int indent)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	if (status)
		return status;
	if (item->field->kind == FIELD_PART)
		return add_fields(p, item->field->nested, attrs, indent);
	new_line(p, indent);
	p->column += (size_t)fprintf(p->to, "%s:", item->field->name);
	return add_fields(p, item->field->nested, attrs, indent + INDENT);
}

static int add_fields(struct paragraph *p, const struct field *fields,
		      struct nlattr *const *attrs, int indent)
{
	const struct field *field;
	struct item item;
	char *text;
	int status;

	for (field = fields; field->name; field++) {
		status = read_item(field, attrs, &item);
		if (status)
			return status;
		if (!item.here)
			continue;
		if (item.nest) {
			status = add_nest(p, &item, indent);
			if (status)
				return status;
			continue;
		}
		text = item_text(&item);
		if (!text)
			return STATUS_REFUSED;
		add_pair(p, field->name, text, indent);
		free(text);
	}
	return STATUS_OK;
}

/* The first field heads the paragraph. */
static int print_paragraph(const struct output *out, struct nlattr *const *attrs)
{
	struct paragraph p = { .to = stdout, .wrap = out->layout == LAYOUT_BLOCK };
	struct item item;
	char *text;
	int status = read_item(out->fields, attrs, &item);

	if (status)
		return status;
	text = item_text(&item);
	if (!text)
		return STATUS_REFUSED;
	p.column = (size_t)printf("%s%s", text, p.wrap ? ":" : "");
	free(text);
	status = add_fields(&p, out->fields + 1, attrs, INDENT);
	putchar('\n');
	return status;
}

/* ---- tables ------------------------------------------------------------- */

static void add_cell(struct output *out, char *text)
{
	if (out->count == out->room) {
		out->room = out->room ? 2 * out->room : 256;
		out->cells = must_alloc(realloc(out->cells, out->room * sizeof(out->cells[0])));
	}
	out->cells[out->count++] = text;
}

static int add_row(struct output *out, struct nlattr *const *attrs)
{
	const struct field *field;
	struct item item;
	char *text;
	int status;

	for (field = out->fields; field->name; field++) {
		status = read_item(field, attrs, &item);
		text = status ? NULL : item_text(&item);
		if (!text)
			return STATUS_REFUSED;
		add_cell(out, text);
	}
	return STATUS_OK;
}

static void add_heads(struct output *out)
{
	const struct field *field;
	char *text, *c;

	for (field = out->fields; field->name; field++) {
		text = must_alloc(strdup(field->name));
		for (c = text; *c; c++)
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c - 'a' + 'A');
		add_cell(out, text);
		out->columns++;
	}
}

static bool is_right(const struct field *field)
{
	return field->kind == FIELD_NUMBER || field->kind == FIELD_SIZE ||
	       field->kind == FIELD_TIME;
}

int terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return columns ? atoi(columns) : 0;
}

#define HEAD_LEAST	4

/*
 * Blanks between columns. Where @most is too little, one is enough, and heads are no wider
 * than what is below them.
 */
static int fit(const struct output *out, int *widths, int most)
{
	int total = 0, gap = 2;
	size_t i, column;

	for (i = 0; i < out->columns; i++)
		total += widths[i] + (i ? gap : 0);
	if (!most || total <= most)
		return gap;
	if (total - (int)out->columns + 1 > most) {
		for (i = 0; i < out->columns; i++)
			widths[i] = HEAD_LEAST;
		for (i = out->columns; i < out->count; i++) {
			column = i % out->columns;
			if ((int)strlen(out->cells[i]) > widths[column])
				widths[column] = (int)strlen(out->cells[i]);
		}
		for (i = 0; i < out->columns; i++)
			if ((int)strlen(out->cells[i]) > widths[i])
				out->cells[i][widths[i]] = '\0';
	}
	return 1;
}

/* A row wider than @most goes on in the next line, at the same column in all rows. */
static void print_row(const struct output *out, size_t row, const int *widths, int gap, int most)
{
	const char *text;
	int at = 0, before;
	size_t i;

	for (i = 0; i < out->columns; i++) {
		before = i ? gap : 0;
		if (most && i && at + before + widths[i] > most) {
			putchar('\n');
			at = 0;
			before = INDENT;
		}
		at += before + widths[i];
		text = out->cells[row * out->columns + i];
		if (is_right(&out->fields[i]))
			printf("%*s%*s", before, "", widths[i], text);
		else
			printf("%*s%-*s", before, "", i + 1 < out->columns ? widths[i] : 0, text);
	}
	putchar('\n');
}

static void print_table(const struct output *out)
{
	int *widths = must_alloc(calloc(out->columns, sizeof(*widths)));
	int width, gap, most = terminal_width();
	size_t i;

	for (i = 0; i < out->count; i++) {
		width = (int)strlen(out->cells[i]);
		if (width > widths[i % out->columns])
			widths[i % out->columns] = width;
	}
	gap = fit(out, widths, most);
	for (i = 0; i < out->count / out->columns; i++)
		print_row(out, i, widths, gap, most);
	free(widths);
}

/* ---- all records -------------------------------------------------------- */

void output_begin(struct output *out, const struct options *options,
		  const struct field *fields, enum layout layout)
{
	*out = (struct output){ .options = options, .fields = fields, .layout = layout };
	if (layout == LAYOUT_EVENT)
		setvbuf(stdout, NULL, _IOLBF, 0);
	else if (options->json)
		out->array = must_alloc(json_object_new_array());
	if (layout == LAYOUT_TABLE && !options->json)
		add_heads(out);
}

static int record_json(struct output *out, struct nlattr *const *attrs)
{
	struct json_object *object;
	int status = json_fields(out->fields, attrs, &object);

	if (status)
		return status;
	if (!out->array)
		output_json(out->options, object);
	else if (json_object_array_add(out->array, object) < 0)
		must_alloc(NULL);
	return STATUS_OK;
}

static int print_record(struct output *out, struct nl_msg *msg)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];

	if (netlink_attrs(msg, attrs) < 0)
		return refused("the kernel's answer is malformed");
	if (out->options->json)
		return record_json(out, attrs);
	if (out->layout == LAYOUT_TABLE)
		return add_row(out, attrs);
	return print_paragraph(out, attrs);
}

int output_record(struct output *out, struct nl_msg *msg)
{
	int status = print_record(out, msg);

	if (status)
		out->failed = true;
	return status;
}

int output_check(void)
{
	if (fflush(stdout) || ferror(stdout))
		return refused("cannot write the output: %s", strerror(errno));
	return STATUS_OK;
}

/* A table is printed only when all of it could be read. */
int output_end(struct output *out)
{
	if (out->array && !out->failed)
		output_json(out->options, out->array);
	else if (out->array)
		json_object_put(out->array);
	if (out->cells && !out->failed)
		print_table(out);
	while (out->count)
		free(out->cells[--out->count]);
	free(out->cells);
	return out->failed ? STATUS_REFUSED : output_check();
}
