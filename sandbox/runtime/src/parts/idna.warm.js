// Maps a name.

URL.canParse("https://bücher.example/");
