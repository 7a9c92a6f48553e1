// The page only passes the form on.
document.getElementById('kept-form').requestSubmit();
