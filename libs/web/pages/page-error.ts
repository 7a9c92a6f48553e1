/** Carries the texts of an error page. */
export class PageError extends Error {
  constructor(
    readonly status: 400 | 403 | 404 | 409 | 503,
    readonly title: string,
    readonly text: string,
  ) {
    super(title);
  }
}
