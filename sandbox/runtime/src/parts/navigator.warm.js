`${navigator.userAgent}`;
