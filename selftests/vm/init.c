// SPDX-License-Identifier: GPL-2.0-only
/*
 * PID 1 of a test guest: mounts, loads the modules, runs /vm/run, removes the
 * modules, reports and ends the machine.
 *
 * Three channels, kept apart so that no output of a test can look like a
 * result and no kernel message can garble TAP:
 *   ttyS0       console and kernel log
 *   ttyS1       standard output and error of the command
 *   port 0xe9   verdict: "VM-START", then "VM-RC n"; only this program writes it
 * On arm64 the terminals are ttyAMA0 and ttyAMA1, and the verdict goes out by
 * semihosting: an instruction that the emulator takes for a call.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#ifdef __aarch64__
#define TAP_TTY		"/dev/ttyAMA1"
#else
#define TAP_TTY		"/dev/ttyS1"
#endif
#define VERDICT_PORT	0xe9	/* QEMU's isa-debugcon */
#define EXIT_PORT	0xf4	/* QEMU's isa-debug-exit */
#define MAX_MODULES	64
#define UNLOAD_TRIES	20
#define UNLOAD_WAIT_US	50000

static const struct {
	const char *source, *target, *type, *data;
} mounts[] = {
	{ "proc", "/proc", "proc", "" },
	{ "sysfs", "/sys", "sysfs", "" },
	{ "devtmpfs", "/dev", "devtmpfs", "" },
	{ "devpts", "/dev/pts", "devpts", "mode=620,ptmxmode=666" },
	{ "tmpfs", "/dev/shm", "tmpfs", "mode=1777" },
	{ "tmpfs", "/tmp", "tmpfs", "mode=1777" },
	{ "tmpfs", "/run", "tmpfs", "mode=755" },
	{ "debugfs", "/sys/kernel/debug", "debugfs", "" },
	{ "tracefs", "/sys/kernel/tracing", "tracefs", "" },
	{ "cgroup2", "/sys/fs/cgroup", "cgroup2", "" },
};

static const struct {
	const char *home;
	uid_t uid;
} homes[] = { { "/home/alice", 1001 }, { "/home/bob", 1002 }, { "/home/mallory", 1003 } };

static int tty = -1;		/* ttyS1 */
static int have_ports;

#ifdef __aarch64__
static int open_ports(void)
{
	return 1;
}

static void close_ports(void)
{
}

static void put_verdict(char c)
{
	register long call __asm__("x0") = 3;	/* SYS_WRITEC */
	register const char *what __asm__("x1") = &c;

	__asm__ volatile("hlt #0xf000" : "+r"(call) : "r"(what) : "memory");
}

/* Power-off ends the emulator there. */
static void exit_emulator(void)
{
}
#else
static int open_ports(void)
{
	return !iopl(3);
}

static void close_ports(void)
{
	iopl(0);
}

static void put_verdict(char c)
{
	outb(c, VERDICT_PORT);
}

static void exit_emulator(void)
{
	outb(0, EXIT_PORT);
}
#endif

static void verdict(const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (const char *c = text; have_ports && *c; c++)
		put_verdict(*c);
}

/* To the test's channel, as a TAP diagnostic or Bail out line. */
static void report(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(tty >= 0 ? tty : STDERR_FILENO, format, args);
	va_end(args);
}

/* Best effort: a debug kernel may lack a file system or a setting. */
static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "init: %s: %s\n", path, strerror(errno));
	close(fd);
}

static void mount_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].target, 0755);
		if (mount(mounts[i].source, mounts[i].target, mounts[i].type, 0, mounts[i].data))
			fprintf(stderr, "init: no %s: %s\n", mounts[i].target, strerror(errno));
	}
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
		if (chown(homes[i].home, homes[i].uid, homes[i].uid))
			fprintf(stderr, "init: %s: %s\n", homes[i].home, strerror(errno));
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fprintf(stderr, "init: lo: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Raw, so that the output arrives as it was written. A shell wants the line discipline. */
static void open_tty(int interactive)
{
	struct termios mode;

	tty = open(TAP_TTY, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0 || interactive || tcgetattr(tty, &mode))
		return;
	cfmakeraw(&mode);
	mode.c_cflag |= CLOCAL;
	cfsetspeed(&mode, B115200);
	tcsetattr(tty, TCSANOW, &mode);
}

/* Each line of /vm/modules: FILE [parameter=value]... in the order of loading. */
static int load_modules(char names[][64], int *count)
{
	char line[4096], *args, *name;
	FILE *list = fopen("/vm/modules", "re");
	int fd, status = 0;

	*count = 0;
	while (list && !status && fgets(line, sizeof(line), list)) {
		if (*count == MAX_MODULES) {
			report("Bail out! more than %d modules\n", MAX_MODULES);
			status = 1;
			break;
		}
		line[strcspn(line, "\n")] = 0;
		args = strchr(line, ' ');
		if (args)
			*args++ = 0;
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, args ? args : "", 0)) {
			report("Bail out! cannot load %s: %s\n", line, strerror(errno));
			status = 1;
		} else {
			name = strrchr(line, '/') + 1;
			name[strcspn(name, ".")] = 0;
			for (char *c = name; *c; c++)
				if (*c == '-')
					*c = '_';
			snprintf(names[(*count)++], sizeof(names[0]), "%s", name);
		}
		if (fd >= 0)
			close(fd);
	}
	if (list)
		fclose(list);
	return status;
}

/*
 * What the killed processes held is released soon after they are reaped, so a
 * busy module is tried again, for at most a second. A test may have removed
 * the module itself.
 */
static int unload_module(const char *name)
{
	for (int i = 0; i < UNLOAD_TRIES; i++) {
		if (!syscall(SYS_delete_module, name, O_NONBLOCK) || errno == ENOENT)
			return 0;
		if (errno != EAGAIN && errno != EBUSY)
			break;
		usleep(UNLOAD_WAIT_US);
	}
	report("not ok - rmmod %s: %s\n", name, strerror(errno));
	return 1;
}

static void run_child(int interactive)
{
	char *const script[] = { "sh", "/vm/run", NULL };
	char *const shell[] = { "sh", "-i", NULL };

	setsid();
	dup2(tty, STDOUT_FILENO);
	dup2(tty, STDERR_FILENO);
	dup2(interactive ? tty : open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	if (interactive)
		ioctl(STDIN_FILENO, TIOCSCTTY, 1);
	if (chdir("/host"))
		_exit(126);
	setenv("PATH", "/host:/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("USER", "root", 1);
	/* That of whoever looks at it, as the command line has it: shell.sh has put that in */
	setenv("TERM", interactive ? "vt100" : "dumb", !interactive);
	setenv("LC_ALL", "C", 1);
	setenv("PS1", "vm:\\w# ", 1);
	execv("/bin/sh", interactive ? shell : script);
	_exit(127);
}

/* Runs the command and reaps all that is left to this process meanwhile. */
static int run_command(int interactive)
{
	pid_t child = fork(), pid;
	int status = 0;

	if (child < 0)
		return 126;
	if (!child) {
		/* Inherited, it would cost each of their system calls 50 instructions. */
		close_ports();
		run_child(interactive);
	}
	do {
		pid = wait(&status);
	} while (pid != child && (pid > 0 || errno == EINTR));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void kill_rest(void)
{
	kill(-1, SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

/* A report turns lockdep off, and so does a table of its own that is full. */
static void check_lockdep(void)
{
	FILE *stats = fopen("/proc/lockdep_stats", "re");
	char line[256];
	int on = 1;

	while (stats && on && fgets(line, sizeof(line), stats))
		sscanf(line, " debug_locks: %d", &on);
	if (stats)
		fclose(stats);
	if (!on)
		write_file("/dev/kmsg", "<4>hamlyn-vm: WARNING: lockdep was off in the end\n");
}

/* The host takes a log without this line for cut short. */
static void end_kernel_log(void)
{
	write_file("/dev/kmsg", "<6>hamlyn-vm: end of run\n");
	usleep(20000);
}

static void end_machine(void)
{
	if (tty >= 0)
		tcdrain(tty);
	sync();
	if (have_ports)
		exit_emulator();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

int main(void)
{
	char names[MAX_MODULES][64];
	int interactive, count, rc;

	mount_all();
	interactive = !access("/vm/interactive", F_OK);
	open_tty(interactive);
	have_ports = open_ports();
	if (!have_ports)
		fprintf(stderr, "init: iopl: %s\n", strerror(errno));
	verdict("VM-START\n");
	write_file("/proc/sys/kernel/hung_task_timeout_secs", "30");
	loopback_up();

	rc = load_modules(names, &count);
	if (!rc)
		rc = run_command(interactive);
	kill_rest();
	while (count > 0)
		if (unload_module(names[--count]) && !rc)
			rc = 1;
	check_lockdep();
	end_kernel_log();
	if (tty >= 0)
		tcdrain(tty);
	verdict("VM-RC %d\n", rc);
	end_machine();
}
