package caddyfile

// farthest is how many letters may be wrong in a word that is taken for a known one.
const farthest = 3

// nearest returns the option that a word was probably meant to be, or nothing.
func nearest(word string) string {
	best, bestDistance := "", farthest+1
	for _, o := range options {
		if d := distance(word, o.name); d < bestDistance && d < len(o.name) {
			best, bestDistance = o.name, d
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out or replaced to get from one word to the other.
func distance(from, to string) int {
	row := make([]int, len(to)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			cost := 1
			if from[i] == to[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(to)]
}
