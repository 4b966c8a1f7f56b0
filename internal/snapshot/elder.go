package snapshot

import "github.com/k8singress/k8singress/internal/kinds"

// Elder names an object that counts before another one, and says what decided that: "the older Ingress/shop/web" if it was
// created before. Manifests do not say when, and then names decide.
func Elder(winner, other kinds.Object) string {
	name := RefOf(winner).String()
	if why := byName(winner, other); why != "" {
		return name + why
	}
	return "the older " + name
}

// ElderOfKind is like Elder, without the name: the message is for the owner of the other object, who may not be allowed to see it.
func ElderOfKind(winner, other kinds.Object, where string) string {
	kind := RefOf(winner).Kind + where
	if why := byName(winner, other); why != "" {
		return "a " + kind + why
	}
	return "an older " + kind
}

// byName is empty where the age has decided.
func byName(winner, other kinds.Object) string {
	created, then := winner.GetCreationTimestamp(), other.GetCreationTimestamp()
	switch {
	case created.IsZero() && !then.IsZero():
		return " (which has no creationTimestamp, and counts as older)"
	case created.IsZero():
		return " (which counts as older by its name: neither has a creationTimestamp)"
	case created.Equal(&then):
		return " (which counts as older by its name: both were created in the same second)"
	}
	return ""
}
