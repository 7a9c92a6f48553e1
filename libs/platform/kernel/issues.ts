/**
 * Says what is wrong with a request or one of its fields.
 * @property code for programs. Published: codes may be added, never removed
 * @property params what varies in the message
 * @property message in English; that of a field continues its name
 */
export type Issue = {
  readonly code: string;
  readonly params: Readonly<Record<string, string | number>>;
  readonly message: string;
};

/** Issues by field name; `base` is for the whole record. */
export type FieldIssues = Record<string, Issue[]>;

/** The parameters of a text such as `must have at most {max, number} characters`. */
type Params<Text extends string> = Text extends `${string}{${infer Param}}${infer Rest}`
  ? (Param extends `${infer Name}, number` ? Record<Name, number> : Record<Param, string>) &
      Params<Rest>
  : unknown;

/** Messages by code. One that says the same as another one in other words has a name of its own, and that code. */
export type IssueTexts = Readonly<Record<string, string | readonly [code: string, text: string]>>;

type TextOf<Entry> = Entry extends readonly [string, infer Text] ? Text & string : Entry & string;

type Issues<Texts> = {
  readonly [Name in keyof Texts]: keyof Params<TextOf<Texts[Name]>> extends never
    ? Issue
    : (params: Params<TextOf<Texts[Name]>>) => Issue;
};

/** The parameters by code. A code with several messages has the parameters of one of them. */
export type ParamsByCode<Texts extends IssueTexts> = {
  readonly [
    Name in keyof Texts as Texts[Name] extends readonly [infer Code extends string, string]
      ? Code
      : Name
  ]: Params<TextOf<Texts[Name]>>;
};

const PARAM = /\{(\w+)(?:, number)?\}/g;

/** Defines issues by their names. Those whose texts have parameters take them, as in `too_long({ max: 255 })`. */
export function defineIssues<const Texts extends IssueTexts>(texts: Texts): Issues<Texts> {
  const issues = Object.entries(texts).map(([name, entry]) => {
    const [code, text] = typeof entry === 'string' ? [name, entry] : entry;
    const create = (params: Issue['params']): Issue => ({
      code,
      params,
      message: text.replaceAll(PARAM, (_, name: string) => String(params[name])),
    });
    return [name, text.includes('{') ? create : create({})];
  });
  return Object.fromEntries(issues) as Issues<Texts>;
}

/** Lists the texts of each code. */
export function listTextsByCode(texts: IssueTexts): Map<string, string[]> {
  const lists = new Map<string, string[]>();
  for (const [name, entry] of Object.entries(texts)) {
    const [code, text] = typeof entry === 'string' ? [name, entry] : entry;
    lists.set(code, [...(lists.get(code) ?? []), text]);
  }
  return lists;
}

/** Returns an issue whose message says first which part of a field it is about. @param place ends with a space */
export function locateIssue(place: string, issue: Issue): Issue {
  return { ...issue, message: place + issue.message };
}

/** Returns the messages of issues, by field. */
export function toFieldMessages(issues: FieldIssues): Record<string, string[]> {
  return mapIssues(issues, ({ message }) => message);
}

/** Returns the messages of issues in one line, each after the name of its field. */
export function renderMessages(issues: FieldIssues): string {
  return Object.entries(issues)
    .flatMap(([field, list]) =>
      list.map(({ message }) => (field === 'base' ? message : `${field} ${message}`)),
    )
    .join('; ');
}

/** Returns the codes of issues, in the order of their messages. */
export function toFieldCodes(issues: FieldIssues): Record<string, string[]> {
  return mapIssues(issues, ({ code }) => code);
}

function mapIssues(issues: FieldIssues, map: (issue: Issue) => string): Record<string, string[]> {
  return Object.fromEntries(Object.entries(issues).map(([field, list]) => [field, list.map(map)]));
}

/** The issues that every service has, by code. The product adds its own. */
export const PLATFORM_ISSUE_TEXTS = {
  required: 'is required',
  blank: 'must not be blank',
  not_text: 'must be a string',
  too_long: 'must have at most {max, number} characters',
  nul_character: 'must not contain a NUL character',
  invalid_unicode: 'must be valid Unicode text',
  no_match: 'must match {pattern}',
  not_integer: 'must be an integer',
  not_number: 'must be a number',
  too_small: 'must be at least {min, number}',
  too_large: 'must be at most {max, number}',
  out_of_range: 'must be between {min, number} and {max, number}',
  not_boolean: 'must be true or false',
  not_choice: 'must be one of {choices}',
  not_color: 'must be a colour such as #6B4226',
  not_time: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z',
  year_out_of_range: 'must be in the years 1 to 9999 in every time zone',
  not_date: 'must be a real date such as 1990-05-31',
  in_future: 'must not be in the future',
  not_object: 'must be an object',
  not_list_of_objects: 'must be a list of objects',
  too_many_elements: 'must have at most {max, number} elements',
  number_too_large: 'must not hold so large a number',
  integer_too_large: 'must not hold an integer beyond {max, number}: send it as a string',
  nested_too_deeply: 'must not be nested deeper than {max, number} levels',
  too_many_keys: 'must have at most {max, number} keys',
  metadata_too_large: 'must have at most 16 KiB',
  unknown_field: 'is not known',
  more_unknown_fields: 'More is not known than is named here',
  body_not_object: 'The body must be a JSON object',
  body_nested_too_deeply: 'The body is nested too deeply',
  wrapper_required: 'is required: wrap the fields in an object of this name',
  invalid_cursor: 'is not a valid cursor for this list',
  invalid_idempotency_key: 'must be 1 to 255 printable ASCII characters',
  idempotency_key_reused: 'was used for a request with another body',
  form_unreadable: 'The form cannot be read',
  form_too_many_fields: 'The form has more than {max, number} fields',
  form_too_large: 'The texts of the form have more than {max, number} KiB',
  command_too_large: 'This would write more than 256 KiB to the history at once',
} as const;

export const PLATFORM_ISSUES = defineIssues(PLATFORM_ISSUE_TEXTS);
