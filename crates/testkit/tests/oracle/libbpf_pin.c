/* libbpf_pin DIRECTORY OBJECT...
 *
 * Loads objects with libbpf, one after the other, which pin maps below one directory, and prints for each
 *
 *   refused
 *   loaded ID
 *
 * with the kernel's number of its map "shared". The directory is a BPF file system that goes with the process. Exit 2 where there
 * can be none.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, args);
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);

	if (argc < 2 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("bpf", argv[1], "bpf", 0, NULL)) {
		perror("a BPF file system of its own");
		return 2;
	}
	libbpf_set_print(quiet);
	options.pin_root_path = argv[1];
	for (int i = 2; i < argc; i++) {
		struct bpf_object *object = bpf_object__open_file(argv[i], &options);
		struct bpf_map_info info = {};
		__u32 length = sizeof(info);

		if (!object || bpf_object__load(object) ||
		    bpf_obj_get_info_by_fd(bpf_object__find_map_fd_by_name(object, "shared"), &info, &length))
			printf("refused\n");
		else
			printf("loaded %u\n", info.id);
		/* Kept open: numbers of maps are not used again. */
	}
	return 0;
}
