package k8singress

import (
	"encoding/json"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/logs"
)

// warnOfResume logs a warning if the arguments of the command line ask Caddy to resume a saved configuration. saved is
// the path of the file in which Caddy saves configurations. A configuration with k8singress is not saved, because it
// could be older than the Caddyfile, unless its JSON sets persist to true. Such a file causes no warning.
func warnOfResume(arguments []string, saved string) {
	isResume := func(argument string) bool {
		return slices.Contains([]string{"--resume", "--resume=true", "-r"}, argument)
	}
	if len(arguments) == 0 || arguments[0] != "run" || !slices.ContainsFunc(arguments, isResume) {
		return
	}
	const reason = "Caddy does not save configurations with k8singress, because they could be older than the Caddyfile"
	log := logs.Logger("k8singress")
	data, err := os.ReadFile(saved)
	if err != nil {
		log.Warn("--resume has no effect, because there is nothing to resume: remove it", zap.String("reason", reason))
		return
	}
	if persists(data) {
		return
	}
	log.Warn("--resume has loaded a file that this version of k8singress has not saved, and that may be outdated: "+
		"remove the file or --resume", zap.String("file", saved), zap.String("reason", reason))
}

// persists reports whether a configuration asks Caddy to save it.
func persists(config []byte) bool {
	var c struct {
		Admin struct {
			Config struct {
				Persist bool `json:"persist"`
			} `json:"config"`
		} `json:"admin"`
	}
	return json.Unmarshal(config, &c) == nil && c.Admin.Config.Persist
}
