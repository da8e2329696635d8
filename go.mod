module github.com/executord/executord

go 1.26.0
