package settings

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/executord/executord/ipc/pagetest"
	"github.com/executord/executord/ipc/roff"
)

var update = flag.Bool("update", false, "write the texts that are made from the settings")

// The texts that are made from the settings.
const (
	helpFile   = "testdata/help.txt"
	manFile    = "../../man/executord.8"
	filePage   = "../../man/executord.env.5"
	sampleFile = "../../systemd/executord.env"
	tableFile  = "../../docs/settings.md"
)

// Help, man page, sample file and table are what the settings say; -update writes them anew.
func TestTextsAreMadeFromTheSettings(t *testing.T) {
	t.Setenv("COLUMNS", "100") // help is as wide as the terminal
	for path, make := range map[string]func(*testing.T) string{helpFile: help, manFile: man, filePage: fileMan, sampleFile: sample, tableFile: table} {
		t.Run(path, func(t *testing.T) {
			want := make(t)
			if *update {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("it says something else than the settings; write it with go test ./daemon/settings -update\n%s", pagetest.FirstDifference(string(got), want))
			}
		})
	}
}

func help(t *testing.T) string {
	var b bytes.Buffer
	if err := Help(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// facts are what is to be known of a setting besides its help.
func (d *declaration) facts() string {
	list := []string{"Default: " + d.byDefault()}
	if values := d.values(); values != "" {
		list = append(list, values)
	}
	return strings.Join(append(list, "reload: "+d.reloads()), "; ")
}

func (d *declaration) reloads() string {
	if d.reload {
		return "yes"
	}
	return "no"
}

// values says what a value may be, where help does not.
func (d *declaration) values() string {
	switch {
	case d.typ.Kind() == reflect.Bool:
		return "true or false"
	case d.isDuration():
		return fmt.Sprintf("from %s to %s", durationText(time.Duration(d.least)), durationText(time.Duration(d.most)))
	case len(d.enum) == 0 && d.unit != "" && !d.isList():
		return fmt.Sprintf("from %d to %d %s", d.least, d.most, d.unit)
	}
	return ""
}

// option is the flag as it is given.
func (d *declaration) option() (flag, value string) {
	if d.typ.Kind() == reflect.Bool {
		return "--[no-]" + d.name, ""
	}
	return "--" + d.name, d.placeholder
}

// byGroup calls f with the settings of each group.
func byGroup(f func(title string, settings []*declaration)) {
	for _, g := range groups {
		var list []*declaration
		for i := range declared {
			if declared[i].group == g.key {
				list = append(list, &declared[i])
			}
		}
		f(g.title, list)
	}
}

func man(t *testing.T) string { return page(t, "testdata/executord.8.tmpl") }

func fileMan(t *testing.T) string { return page(t, "testdata/executord.env.5.tmpl") }

// page makes a man page of a template.
func page(t *testing.T, file string) string {
	type setting struct{ Option, Variable, Help, Facts, FileFacts string }
	type group struct {
		Title            string
		Settings, InFile []setting // InFile are those that a settings file may have
	}
	var data struct{ Groups []group }
	byGroup(func(title string, list []*declaration) {
		g := group{Title: roff.Text(title)}
		for _, d := range list {
			name, value := d.option()
			option := ".B " + roff.Text(name)
			if value != "" {
				option = ".BI " + roff.Text(name) + "= " + roff.Text(value)
			}
			s := setting{
				option, roff.Text(d.variable), roff.Paragraph(d.help + "."),
				roff.Paragraph("Variable: " + roff.Unbroken + d.variable + ". " + d.facts() + "."), roff.Paragraph(d.facts() + "."),
			}
			g.Settings = append(g.Settings, s)
			if d.name != "settings-file" { // it cannot name itself
				g.InFile = append(g.InFile, s)
			}
		}
		data.Groups = append(data.Groups, g)
	})
	made, err := template.ParseFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := made.Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sample(*testing.T) string {
	var b strings.Builder
	b.WriteString(`# Settings of executord. Each is here as a comment, with its default where that is a value; executord(8) says more.
# "reload: yes" changes with "systemctl reload executord", the rest with a restart. Flags and variables of the environment
# come before this file. The syntax is that of EnvironmentFile= in systemd.exec(5), but the service reads the file itself.
`)
	byGroup(func(title string, list []*declaration) {
		first := true
		for _, d := range list {
			if d.name == "settings-file" { // it cannot name itself
				continue
			}
			if first {
				fmt.Fprintf(&b, "\n## %s\n", title)
				first = false
			}
			fmt.Fprintf(&b, "\n%s\n#%s=%s\n", roff.Wrap("# ", 100, d.help+". "+d.facts()+"."), d.variable, d.def)
		}
	})
	return b.String()
}

func table(*testing.T) string {
	var b strings.Builder
	b.WriteString(`# Settings of executord

Made from ` + "`daemon/settings`; `go test ./daemon/settings -update`" + ` writes it. Each setting is a flag, or the variable beside it in the
environment or in the file of ` + "`--settings-file`" + `; the flag comes before the environment, that before the file, and that before
the default. A list is separated by commas. *Reload* says what changes while the service runs. What the limits mean:
` + "`docs/limits.md`" + `.
`)
	cell := strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`)
	byGroup(func(title string, list []*declaration) {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | variable | default | values | reload | |\n| --- | --- | --- | --- | --- | --- |\n", title)
		for _, d := range list {
			name, _ := d.option()
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s |\n", name, d.variable, cell.Replace(d.byDefault()), d.values(),
				d.reloads(), cell.Replace(d.help))
		}
	})
	return b.String()
}

// The sample with every line that has a value in force is a settings file that says the defaults.
func TestSampleFileSaysTheDefaults(t *testing.T) {
	text, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if variable, value, found := strings.Cut(strings.TrimPrefix(line, "#"), "="); found && isVariable(variable) && value != "\n" {
			line = variable + "=" + value
		}
		lines = append(lines, line)
	}
	want, err := load()
	if err != nil {
		t.Fatal(err)
	}
	got, err := load("--settings-file=" + writeFile(t, strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.List() {
		if s.Name == "settings-file" {
			continue
		}
		if d := declared[i]; s.Value != want.List()[i].Value || (s.Source == File) != (d.def != "") {
			t.Errorf("got %+v", s)
		}
		if !slices.Contains(strings.Split(string(text), "\n"), "#"+s.Variable+"="+declared[i].def) {
			t.Errorf("%s is not there as a comment", s.Variable)
		}
	}
}
