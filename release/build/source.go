// Package build compiles the binary for each platform of a release from one state of the source.
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

// Source is the state of the source from which a release is made. Equal sources result in equal bytes.
type Source struct {
	// Root is the folder of the repository.
	Root string
	// Version is the tag of the commit. If there is no tag, it is a Go pseudo-version with the time and hash of the
	// commit. It ends with "+dirty" if files differ from the commit.
	Version string
	// Revision is the hash of the commit. It is empty if the source is not in a git repository.
	Revision string
	// Time is SOURCE_DATE_EPOCH if it is set, otherwise the time of the commit. It is used instead of the clock, so
	// that builds can be reproduced.
	Time time.Time
}

// epochVariable is the environment variable that reproducible builds use for the time of the build, in seconds since
// 1970.
const epochVariable = "SOURCE_DATE_EPOCH"

// ReadSource reads the state of the repository in the folder root with git. An empty version is replaced by the version
// of the commit. Without git, for example in an archive of the source, version must be given, and the time is
// SOURCE_DATE_EPOCH or 1970.
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

// Tag returns the version as an image tag. It has no leading "v", like the version of a chart, and hyphens in place of
// plus signs, which tags cannot contain.
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
