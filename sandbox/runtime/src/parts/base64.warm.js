atob(btoa("warm"));
