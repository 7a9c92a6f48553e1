/** Nobody is signed in on this page, however it came to that: nothing of a person stays in the browser (ADR-0139). */
void forgetPerson().catch((error) => console.debug(error));
