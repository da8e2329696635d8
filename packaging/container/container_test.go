// Package container has the recipe of the image, and manifests to run it by. This test holds them to what no validator of
// theirs knows: that executord takes the settings, that whoever stops it waits for as long as it was told, and that the memory
// of a container has room for all programs at once.
package container

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/executord/executord/daemon/settings"
)

// What a container has besides programs: a worker at rest, and the service with values under way.
const (
	restMiB    = 100
	serviceMiB = 512
)

// workload is one container of executord as a manifest has it.
type workload struct {
	environ  map[string]string
	grace    time.Duration // between being asked to end and being killed
	memory   string        // limit, as 3Gi or 3g
	sessions bool          // others than the pod itself may call
}

func TestManifestsFitTheService(t *testing.T) {
	for name, w := range map[string]workload{
		"compose":    composed(t),
		"deployment": deployed(t, "kubernetes/deployment.yaml"),
		"sidecar":    deployed(t, "kubernetes/sidecar.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			s := w.settings(t)
			if w.grace <= s.StopTimeout {
				t.Errorf("it is killed after %s, and may take %s (EXECUTORD_STOP_TIMEOUT)", w.grace, s.StopTimeout)
			}
			if name == "deployment" && s.DrainDelay < 10*time.Second {
				t.Errorf("callers are served for %s only while the cluster forgets the pod", s.DrainDelay)
			}
			one := 2*s.Max.HeapMiB + s.Max.BufferMiB + s.Max.SlackMiB + restMiB
			if need := (s.Workers+s.Retained)*int(one) + s.Spares*restMiB + serviceMiB; mebibytes(t, w.memory) < need {
				t.Errorf("memory is limited to %s, and may be %d MiB", w.memory, need)
			}
			if w.sessions != (s.TokenFile != "") {
				t.Errorf("callers come from elsewhere: %v; tokens: %q", w.sessions, s.TokenFile)
			}
		})
	}
}

// settings are those that executord makes of the variables. Files that are there in the container only are put in place.
func (w workload) settings(t *testing.T) settings.Settings {
	t.Helper()
	dir := t.TempDir()
	if w.environ["EXECUTORD_TOKEN_FILE"] != "" {
		w.environ["EXECUTORD_TOKEN_FILE"] = filepath.Join(dir, "tokens")
		if err := os.WriteFile(w.environ["EXECUTORD_TOKEN_FILE"], []byte("me 0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.environ["EXECUTORD_WORKER_BINARY"] = "/bin/true"
	var text strings.Builder
	for name, value := range w.environ {
		text.WriteString(name + "=" + value + "\n")
	}
	file := filepath.Join(dir, "executord.env") // unlike the environment, it may have nothing that is no setting
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := settings.Load([]string{"--settings-file", file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Settings()
}

// composed is the service of the Compose file.
func composed(t *testing.T) workload {
	t.Helper()
	var file struct {
		Services struct {
			Executord struct {
				Environment     map[string]string `yaml:"environment"`
				StopGracePeriod string            `yaml:"stop_grace_period"`
				MemLimit        string            `yaml:"mem_limit"`
			} `yaml:"executord"`
		} `yaml:"services"`
	}
	text, err := os.ReadFile("compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := file.Services.Executord
	grace, err := time.ParseDuration(of.StopGracePeriod)
	if err != nil {
		t.Fatal(err)
	}
	return workload{of.Environment, grace, of.MemLimit, true}
}

// container is one of a pod.
type container struct {
	Name string `yaml:"name"`
	Env  []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	Resources struct {
		Limits struct {
			Memory string `yaml:"memory"`
		} `yaml:"limits"`
	} `yaml:"resources"`
}

// deployed is executord in the first document of a file for Kubernetes, where it is the workload or a sidecar.
func deployed(t *testing.T, path string) workload {
	t.Helper()
	var file struct {
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int         `yaml:"terminationGracePeriodSeconds"`
					Init       []container `yaml:"initContainers"`
					Containers []container `yaml:"containers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(text)).Decode(&file)
	}
	if err != nil {
		t.Fatal(err)
	}
	pod := file.Spec.Template.Spec
	for _, c := range append(pod.Init, pod.Containers...) {
		if c.Name != "executord" {
			continue
		}
		environ := map[string]string{}
		for _, v := range c.Env {
			environ[v.Name] = v.Value
		}
		return workload{environ, time.Duration(pod.Grace) * time.Second, c.Resources.Limits.Memory, len(pod.Init) == 0}
	}
	t.Fatalf("%s has no executord", path)
	return workload{}
}

// mebibytes reads a quantity as Kubernetes (3Gi) or Compose (3g) writes it.
func mebibytes(t *testing.T, text string) int {
	t.Helper()
	for unit, factor := range map[string]int{"Gi": 1024, "Mi": 1, "g": 1024, "m": 1} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			return n * factor
		}
	}
	t.Fatalf("cannot read %q as a size of memory", text)
	return 0
}
