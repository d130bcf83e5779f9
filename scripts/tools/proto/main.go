// Command proto writes the Go code of a file of protocol buffers beside it. It needs no protoc.
//
//	proto FILE.proto...
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := generate(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func generate(file string) error {
	folder, name := filepath.Split(file)
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{ImportPaths: []string{folder}}, SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name}, Parameter: proto.String("paths=source_relative"),
		ProtoFile: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(compiled[0])},
	})
	if err != nil {
		return err
	}
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	answer := plugin.Response()
	if answer.Error != nil {
		return fmt.Errorf("%s: %s", file, *answer.Error)
	}
	for _, made := range answer.File {
		if err := os.WriteFile(filepath.Join(folder, made.GetName()), []byte(made.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
