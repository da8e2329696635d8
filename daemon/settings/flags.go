package settings

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// What a command line may ask for instead of a service.
var (
	ErrHelp    = errors.New("help is asked for")
	ErrVersion = errors.New("the version is asked for")
)

// flagText is what was given for one flag: its values as they are, for decode sees to those of all sources.
type flagText []string

// Decode implements kong.MapperValue.
func (f *flagText) Decode(ctx *kong.DecodeContext) error {
	var text string
	err := ctx.Scan.PopValueInto("value", &text)
	*f = append(*f, text)
	return err
}

// flagSwitch is flagText of a flag that may stand without a value.
type flagSwitch []string

// IsBool implements kong.BoolMapperValue.
func (f *flagSwitch) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (f *flagSwitch) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*f = append(*f, "true")
		return nil
	}
	*f = append(*f, ctx.Scan.Pop().String())
	return nil
}

// grammar makes a struct for kong with a field for each setting, in their order, that takes any text, and one each for
// help and the version.
func grammar() reflect.Value {
	fields := []reflect.StructField{
		{Name: "Help", Type: reflect.TypeFor[bool](), Tag: `short:"h" help:"Print this and exit."`},
		{Name: "Version", Type: reflect.TypeFor[bool](), Tag: `help:"Print the version and exit."`},
	}
	for i, d := range declared {
		typ, tag := reflect.TypeFor[flagText](), ` sep:"none"`
		if d.typ.Kind() == reflect.Bool {
			typ, tag = reflect.TypeFor[flagSwitch](), ` negatable:""`
		}
		help := strings.ReplaceAll(d.help+". Default: "+d.byDefault()+" ($"+d.variable+")", "$", "$$")
		fields = append(fields, reflect.StructField{
			Name: "Setting" + strconv.Itoa(i), Type: typ,
			Tag: reflect.StructTag(`name:"` + d.name + `" group:"` + d.group + `" placeholder:"` + d.placeholder + `" help:` + strconv.Quote(help) + tag),
		})
	}
	return reflect.New(reflect.StructOf(fields))
}

func parser(into reflect.Value, out io.Writer) *kong.Kong {
	var titles []kong.Group
	for _, g := range groups {
		titles = append(titles, kong.Group{Key: g.key, Title: g.title})
	}
	return kong.Must(into.Interface(),
		kong.Name("executord"),
		kong.Description("Runs JavaScript in a sandbox and returns what it produced."),
		kong.NoDefaultHelp(), kong.ExplicitGroups(titles),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(out, out),
	)
}

// Help writes what executord --help prints.
func Help(w io.Writer) error {
	ctx, err := kong.Trace(parser(grammar(), w), nil)
	if err != nil {
		return err
	}
	return ctx.PrintUsage(false)
}

// parseFlags reads a command line. Help is help, whatever stands beside it.
func parseFlags(args []string) (map[string][]string, error) {
	before := args
	if end := slices.Index(args, "--"); end >= 0 {
		before = args[:end]
	}
	if slices.Contains(before, "--help") || slices.Contains(before, "-h") {
		return nil, ErrHelp
	}
	into := grammar()
	if _, err := parser(into, io.Discard).Parse(args); err != nil {
		return nil, err
	}
	if into.Elem().FieldByName("Version").Bool() {
		return nil, ErrVersion
	}
	given := map[string][]string{}
	for i, d := range declared {
		texts := into.Elem().FieldByName("Setting" + strconv.Itoa(i)).Convert(reflect.TypeFor[[]string]()).Interface().([]string)
		if texts != nil {
			given[d.name] = texts
		}
	}
	return given, nil
}
