const fromHelper = "helped";
function thisOfHelper() { return this; }
