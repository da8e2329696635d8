package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"
)

// choice says which cases.
type choice struct {
	WPT   string   `name:"wpt" required:"" placeholder:"DIR" help:"Root of a tree of web-platform-tests, see 'wpt lay --help'."`
	Areas []string `default:"ecma429" sep:"," placeholder:"NAME,…" help:"Areas by name, or all, noserver, server, ecma429 (those that need no server). Default: ${default}."`
	Only  string   `placeholder:"REGEXP" help:"Only cases whose path and variant match."`
}

// cases are those chosen, and the tree that they come from.
func (c *choice) cases() (tree fs.FS, cases []testCase, err error) {
	list, err := pick(c.Areas)
	if err != nil {
		return nil, nil, err
	}
	var only *regexp.Regexp
	if c.Only != "" {
		if only, err = regexp.Compile(c.Only); err != nil {
			return nil, nil, err
		}
	}
	tree = os.DirFS(c.WPT)
	cases, err = collect(tree, list, only)
	return tree, cases, err
}

// runCommand is wpt run.
type runCommand struct {
	choice
	Worker    string `type:"existingfile" placeholder:"FILE" help:"The executor-worker to run. Default: beside this program, then in PATH."`
	Jobs      int    `default:"2" help:"Programs at once. Default: ${default}."`
	Slow      int    `default:"1" help:"Multiply the time-outs of the harness, 10 or 60 s. Default: ${default}."`
	Once      bool   `help:"Do not run cases a second time that were not clean."`
	Server    string `placeholder:"URL" help:"A running server of the suite, as ${origin}. Without it data files travel in the program, which has no network. Addresses relative to a test need a worker with the build tag executor_faults."`
	Out       string `placeholder:"FILE" help:"Save the results as JSON."`
	ByFile    bool   `help:"Print a row for each file."`
	Tentative bool   `help:"Score the files that no standard has yet, instead of the others."`
	Record    string `placeholder:"FILE" help:"Raise the floors in this file to what passes now, and add those of new areas."`
}

// Run runs the cases.
func (c *runCommand) Run(ctx context.Context, s streams) error {
	tree, cases, err := c.cases()
	if err != nil {
		return err
	}
	if c.Jobs < 1 || c.Slow < 1 {
		return errors.New("--jobs and --slow must be positive")
	}
	results, err := c.execute(ctx, tree, cases, s.err)
	if err != nil {
		return err
	}
	r := &report{Revision: revision(tree), Files: results}
	if c.Out != "" {
		if err := r.save(c.Out); err != nil {
			return err
		}
	}
	return c.judge(r, s.out)
}

func (c *runCommand) execute(ctx context.Context, tree fs.FS, cases []testCase, progress io.Writer) ([]fileResult, error) {
	p, err := newPool(ctx, c.Worker, c.Jobs)
	if err != nil {
		return nil, err
	}
	r := runner{
		maker:    maker{tree: tree, server: strings.TrimSuffix(c.Server, "/"), short: time.Duration(c.Slow) * shortTest},
		executor: p, grace: defaultGrace,
	}
	results := r.runAll(ctx, cases, c.Jobs, progress)
	if !c.Once {
		r.again(ctx, cases, results, progress)
	}
	if err := errors.Join(ctx.Err(), p.Close()); err != nil {
		return nil, err
	}
	return results, nil
}

// judge prints the table and fails where an area fell. Floors are for whole areas.
func (c *runCommand) judge(r *report, out io.Writer) error {
	files := standard(r.Files, c.Tentative)
	rows, floor := byArea(files), floors{}
	if c.Only == "" && !c.Tentative {
		var err error
		if floor, err = readFloors(floorsText); err != nil {
			return err
		}
	}
	if c.ByFile {
		printFiles(out, files)
	} else {
		printAreas(out, rows, floor)
	}
	if c.Record != "" && c.Only == "" && !c.Tentative {
		if err := record(c.Record, rows); err != nil {
			return err
		}
	}
	if faults := fallen(rows, floor); len(faults) > 0 {
		return errors.New("worse than before:\n" + strings.Join(faults, "\n"))
	}
	return nil
}

// record raises floors.
func record(path string, rows []*row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := readFloors(text)
	if err != nil {
		return err
	}
	for _, r := range rows {
		f[r.name] = max(f[r.name], r.passes)
	}
	if text, err = json.MarshalIndent(f, "", " "); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// revision is what `wpt lay` wrote down, empty for any other tree.
func revision(tree fs.FS) string {
	text, err := fs.ReadFile(tree, "REVISION")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// programCommand is wpt program.
type programCommand struct {
	WPT  string `name:"wpt" required:"" placeholder:"DIR" help:"Root of a tree of web-platform-tests."`
	Case string `arg:"" help:"Path of a file, with its variant."`
}

// Run prints the program.
func (c *programCommand) Run(s streams) error {
	p, search, _ := strings.Cut(strings.TrimPrefix(c.Case, "/"), "?")
	tree := os.DirFS(c.WPT)
	cases, err := readCases(tree, area{}, p)
	if err != nil {
		return err
	}
	for _, t := range cases {
		if strings.TrimPrefix(t.Search, "?") == search || search == "" {
			text, err := maker{tree: tree, short: shortTest}.make(t)
			printf(s.out, "%s", text)
			return err
		}
	}
	return fmt.Errorf("there is no case %s for this kind of global", c.Case)
}
