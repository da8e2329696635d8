// META: global=worker,shadowrealm
test(() => {}, "not for us");
