import path from 'node:path';

/** Writes the samples of guides in C#, Java and Go, which send what the sample in curl sends, with the function `send`. */

/** The guides that have them. Each is one program in Java and in Go, so that its names differ. */
const GUIDES = new Set(['first-stamp', 'connect-a-till', 'webhooks']);
const SAMPLES =
  /^```sh\n(curl (?:(?!^```)[^])*)^```\n\n```ts\n((?:(?!^```)[^])*)^```\n\n```python\n(?:(?!^```)[^])*^```\n(?!\n```csharp)/gm;
const PATH = /"\$INKPAD_URL\/api\/v1\/accounts\/1(\/[^"]*)"/;

/**
 * Adds them below the sample in Python, unless they stand there.
 * @param {string} file
 * @param {string} text
 * @returns {string}
 */
export function addCompiledSamples(file, text) {
  if (!GUIDES.has(path.basename(file, '.md'))) return text;
  return text.replaceAll(SAMPLES, (samples, curl, typescript) => {
    const place = PATH.exec(curl)?.[1];
    return place === undefined ? samples : samples + renderSamples(place, curl, typescript);
  });
}

function renderSamples(place, curl, typescript) {
  const body = / -d '([^']*)'/.exec(curl)?.[1];
  const method = / -X ([A-Z]+)/.exec(curl)?.[1] ?? (body === undefined ? 'GET' : 'POST');
  const start = `"${method}", "${place}"`;
  const block = body && `"""\n${body.replaceAll(/^/gm, '    ')}\n    """`;
  const name = /const (\w+) = await/.exec(typescript)?.[1] ?? /(\w+)(\?|$)/.exec(place)?.[1];
  return `
\`\`\`csharp
var ${name} = await Inkpad.Send(${block ? `${start}, ${block}` : start});
Console.WriteLine($"{${name}.Status} {${name}.Body}");
\`\`\`

\`\`\`java
var ${name} = Inkpad.send(${start}, ${block ?? 'null'});
System.out.println(${name}.status() + " " + ${name}.body());
\`\`\`

\`\`\`go
${name}, err := send(${start}, ${body ? `\`${body}\`` : '""'})
if err != nil {
	return err
}
fmt.Println(${name}.Status, ${name}.Body)
\`\`\`
`;
}
