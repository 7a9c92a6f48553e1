import type { FieldErrors } from '#platform/kernel/errors.js';
import type { FormErrors } from './form-errors.js';
import type { Inputs } from './forms.js';

/** An error above a form. @property id of the field that it leads to; null: it is about the whole form */
export type ShownError = { id: string | null; text: string };

/** Collects what the parts of a page add to it while the page is rendered. */
export class PageParts {
  readonly errors: ShownError[] = [];
  /** What the part of a field shows, by its name, unless the view says otherwise. */
  inputs: Inputs = {};
  /** The errors of a form by its fields that no part has shown yet. */
  private pending: FieldErrors = {};
  /** Whether the page has buttons or forms of `actions.js`. */
  hasActions = false;

  /** Lists the errors of a form. The parts of its fields show their errors. */
  addRejection({ fields, text }: FormErrors): void {
    this.pending = { ...fields };
    this.addErrors(text);
  }

  /** Lists the errors of the fields that the page does not show. Call it after the page was rendered. */
  addPending(): void {
    for (const name of Object.keys(this.pending)) this.addErrors(this.take(name).join('\n'));
  }

  /** Tells whether a field has errors that no part has shown yet, for parts that are closed without. */
  has(name: string): boolean {
    return name in this.pending;
  }

  /** Takes the errors of a field, so that no second form of the page shows them. */
  take(name: string): readonly string[] {
    const { [name]: sentences = [], ...pending } = this.pending;
    this.pending = pending;
    return sentences;
  }

  /**
   * Lists the errors of a field above the form.
   * @returns its sentences, for the field itself
   */
  addFieldErrors(
    id: string,
    label: string,
    sentences: readonly string[] | null | undefined,
  ): readonly string[] {
    if (!sentences) return [];
    if (sentences.length > 0) this.errors.push({ id, text: `${label}: ${sentences.join(' ')}` });
    return sentences;
  }

  /** Lists errors of the whole form above it. @param text one sentence a line; empty or null: no errors */
  addErrors(text: string | null = null): void {
    const sentences = (text ?? '').split('\n').filter((line) => line !== '');
    if (sentences.length > 0) this.errors.push({ id: null, text: sentences.join(' ') });
  }

  /** Makes the page load the script of its buttons and forms. */
  addAction(): void {
    this.hasActions = true;
  }
}
