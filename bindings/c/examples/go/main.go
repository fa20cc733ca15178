// SPDX-License-Identifier: MIT OR Apache-2.0

// Packets through a program from Go, without cgo: the library is opened at run time. Handles are numbers.
//
//	CGO_ENABLED=0 go run . examples/firewall.o firewall
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// packet is struct paceline_packet.
type packet struct {
	size           uintptr
	data           *byte
	length         uintptr
	metadata       *byte
	metadataLength uintptr
	timeNs         uint64
	wireLength     uint32
	ingressIfindex uint32
	egressIfindex  uint32
	rxQueue        uint32
}

// frame is struct paceline_frame.
type frame struct {
	size           uintptr
	data           unsafe.Pointer
	length         uintptr
	metadata       unsafe.Pointer
	metadataLength uintptr
	returnValue    uint64
	verdict        uint32
	redirect       uint32
	target         uint32
	key            uint32
	redirectFlags  uint32
	wireLength     uint32
}

// abiVersion is PACELINE_ABI_VERSION of the header that the structures above are from.
const abiVersion = 1

var (
	libVersion        func() uint32
	errorMessage      func(handle uintptr) string
	errorFree         func(handle uintptr) int32
	objectOpen        func(path string, options unsafe.Pointer, err *uintptr) uintptr
	objectLoad        func(object uintptr, options unsafe.Pointer, err *uintptr) uintptr
	objectFree        func(object uintptr) int32
	collectionProgram func(collection uintptr, name string, err *uintptr) uintptr
	collectionFree    func(collection uintptr) int32
	programFree       func(program uintptr) int32
	programRun        func(program, host uintptr, packet *packet, frame *frame, err *uintptr) int32
	hostNew           func(cpu uint32, err *uintptr) uintptr
	hostFree          func(host uintptr) int32
	liveHandles       func() uintptr
)

// open opens the library and finds its functions.
func open(path string) error {
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	for name, function := range map[string]any{
		"paceline_abi_version":        &libVersion,
		"paceline_error_message":      &errorMessage,
		"paceline_error_free":         &errorFree,
		"paceline_object_open":        &objectOpen,
		"paceline_object_load":        &objectLoad,
		"paceline_object_free":        &objectFree,
		"paceline_collection_program": &collectionProgram,
		"paceline_collection_free":    &collectionFree,
		"paceline_program_free":       &programFree,
		"paceline_program_run":        &programRun,
		"paceline_host_new":           &hostNew,
		"paceline_host_free":          &hostFree,
		"paceline_live_handles":       &liveHandles,
	} {
		purego.RegisterLibFunc(function, library, name)
	}
	if version := libVersion(); version != abiVersion {
		return fmt.Errorf("%s has version %d of the interface, not %d", path, version, abiVersion)
	}
	return nil
}

// failure makes an error of the library one of Go, and frees it.
func failure(handle uintptr) error {
	if handle == 0 {
		return errors.New("failed")
	}
	defer errorFree(handle)
	return errors.New(errorMessage(handle))
}

func run(path, name string) error {
	var e uintptr
	object := objectOpen(path, nil, &e)
	if object == 0 {
		return failure(e)
	}
	defer objectFree(object)
	collection := objectLoad(object, nil, &e)
	if collection == 0 {
		return failure(e)
	}
	defer collectionFree(collection)
	program := collectionProgram(collection, name, &e)
	if program == 0 {
		return failure(e)
	}
	defer programFree(program)
	host := hostNew(0, &e)
	if host == 0 {
		return failure(e)
	}
	defer hostFree(host)

	bytes := make([]byte, 60)
	bytes[12], bytes[13] = 0x08, 0x06 // ARP
	in := packet{size: unsafe.Sizeof(packet{}), data: &bytes[0], length: uintptr(len(bytes))}
	out := frame{size: unsafe.Sizeof(frame{})}
	status := programRun(program, host, &in, &out, &e)
	// The library reads the packet's bytes through a pointer that the garbage collector does not see.
	runtime.KeepAlive(bytes)
	if status != 0 {
		return failure(e)
	}
	left := unsafe.Slice((*byte)(out.data), out.length)
	fmt.Printf("verdict %d, %d bytes, type %#04x\n", out.verdict, len(left), uint(left[12])<<8|uint(left[13]))
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: example OBJECT PROGRAM")
		os.Exit(2)
	}
	path := os.Getenv("PACELINE_LIBRARY")
	if path == "" {
		path = "libpaceline.so.1"
	}
	err := open(path)
	if err == nil {
		err = run(os.Args[1], os.Args[2])
	}
	if err == nil && liveHandles() != 0 {
		err = fmt.Errorf("%d handles were forgotten", liveHandles())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
