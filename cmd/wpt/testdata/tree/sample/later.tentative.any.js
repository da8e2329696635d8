test(() => {}, "a file that no standard has yet");
