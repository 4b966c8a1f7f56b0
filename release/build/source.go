// Package build compiles the binaries of a release, one for each platform, from the same state of the source code.
package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source describes the state of the source code from which a release is built. The same state always results in the
// same bytes.
type Source struct {
	// Root is the root folder of the repository.
	Root string
	// Version is the git tag of the commit. If the commit has no tag, Version is a Go pseudo-version with the time and
	// hash of the commit. It ends with "+dirty" if there are uncommitted changes.
	Version string
	// Revision is the hash of the commit. It is empty outside of a git repository.
	Revision string
	// Time is used as the build time instead of the current time, so that builds are reproducible. It is the value of
	// the environment variable SOURCE_DATE_EPOCH if it is set, or else the time of the commit.
	Time time.Time
}

// epochVariable is the environment variable with the build time for reproducible builds, in seconds since 1970.
const epochVariable = "SOURCE_DATE_EPOCH"

// ReadSource reads the state of the git repository in the folder root. If the argument version is empty, the version
// comes from the git commit. Outside of a git repository, for example in an unpacked source archive, version is
// required, and Time is the value of SOURCE_DATE_EPOCH, or the start of 1970 if this variable is not set.
func ReadSource(ctx context.Context, root, version string) (Source, error) {
	s := Source{Root: root, Version: version, Time: time.Unix(0, 0).UTC()}
	if err := s.readCommit(ctx); err != nil {
		if version == "" {
			return s, fmt.Errorf("finding the version with git (set -version to build without git): %w", err)
		}
		s.Revision = ""
	}
	if epoch, ok := os.LookupEnv(epochVariable); ok {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return s, fmt.Errorf("reading %s: %w", epochVariable, err)
		}
		s.Time = time.Unix(seconds, 0).UTC()
	}
	return s, nil
}

func (s *Source) readCommit(ctx context.Context) error {
	shown, err := git(ctx, s.Root, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	hash, seconds, _ := strings.Cut(shown, " ")
	number, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the time of the commit: %w", err)
	}
	s.Revision, s.Time = hash, time.Unix(number, 0).UTC()
	if s.Version != "" {
		return nil
	}
	changed, err := git(ctx, s.Root, "status", "--porcelain")
	if err != nil {
		return err
	}
	s.Version = "v0.0.0-" + s.Time.Format("20060102150405") + "-" + hash[:12]
	if tag, err := git(ctx, s.Root, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		s.Version = tag
	}
	if changed != "" {
		s.Version += "+dirty"
	}
	return nil
}

// Tag returns the version in the format of image tags. Like the version of the Helm chart, it has no leading "v". Plus
// signs, which are not allowed in tags, are replaced with hyphens.
func (s Source) Tag() string { return strings.ReplaceAll(strings.TrimPrefix(s.Version, "v"), "+", "-") }

func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, arguments...)...)
	output, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
