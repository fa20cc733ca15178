module paceline-example

go 1.23

require github.com/ebitengine/purego v0.8.4
