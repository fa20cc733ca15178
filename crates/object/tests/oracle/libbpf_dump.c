/* libbpf_dump OBJECT [BTF]
 *
 * Loads an object with libbpf, CO-RE relocated against the types in BTF or the kernel's, and prints its maps and the relocated instructions of its XDP programs.
 *
 *   map TYPE KEY_SIZE VALUE_SIZE MAX_ENTRIES FLAGS NAME
 *   prog NAME
 *   SLOT, 16 hex digits: the 8 bytes as they lie in memory, map descriptors replaced by the map's number
 *
 * The descriptors are replaced because they differ from run to run. Exit 1 when libbpf or the kernel refuses.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, args);
}

static int map_number(struct bpf_object *object, int fd)
{
	struct bpf_map *map;
	int number = 0;
	bpf_object__for_each_map(map, object) {
		if (bpf_map__fd(map) == fd)
			return number;
		number++;
	}
	return -1;
}

static void print_program(struct bpf_object *object, struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t count = bpf_program__insn_cnt(program);
	printf("prog %s\n", bpf_program__name(program));
	for (size_t i = 0; i < count; i++) {
		struct bpf_insn insn = insns[i];
		unsigned char bytes[8];
		int is_load = insn.code == (BPF_LD | BPF_IMM | BPF_DW);
		if (is_load && (insn.src_reg == BPF_PSEUDO_MAP_FD || insn.src_reg == BPF_PSEUDO_MAP_VALUE))
			insn.imm = map_number(object, insn.imm);
		memcpy(bytes, &insn, 8);
		for (int b = 0; b < 8; b++)
			printf("%02x", bytes[b]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct bpf_program *program;
	struct bpf_object *object;
	struct bpf_map *map;
	LIBBPF_OPTS(bpf_object_open_opts, options);

	if (argc != 2 && argc != 3)
		return 2;
	options.btf_custom_path = argv[2];
	libbpf_set_print(quiet);
	object = bpf_object__open_file(argv[1], &options);
	if (!object)
		return 1;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, bpf_program__type(program) == BPF_PROG_TYPE_XDP);
	/* Nothing is left behind, and there may be no file system to pin to. */
	bpf_object__for_each_map(map, object)
		bpf_map__set_pin_path(map, NULL);
	/* Some were loaded even where one was refused; then the rest says nothing. */
	if (bpf_object__load(object))
		return 1;
	bpf_object__for_each_map(map, object)
		printf("map %u %u %u %u %u %s\n", bpf_map__type(map), bpf_map__key_size(map), bpf_map__value_size(map),
		       bpf_map__max_entries(map), bpf_map__map_flags(map), bpf_map__name(map));
	bpf_object__for_each_program(program, object)
		if (bpf_program__type(program) == BPF_PROG_TYPE_XDP)
			print_program(object, program);
	return 0;
}
