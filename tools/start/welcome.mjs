import { logsJson, renderLogLine } from '../../apps/cli/log-lines.mjs';

/**
 * Renders the welcome of `npm start`. The token is shown only once, because output may be stored or forwarded where no
 * token belongs, and in a log never.
 */
export function renderWelcome(publicUrl, { localFile, local, created, signInToken, fillsShop }) {
  const elsewhere = local
    ? `the one created at the first start, in ${localFile}`
    : 'the one created at the first start, which is not in this data folder';
  if (logsJson()) {
    const message = `running at ${publicUrl}; API token: ${local ? `in ${localFile}` : elsewhere}`;
    return renderLogLine('inkpad', message);
  }
  const token = created ? local.api_token : null;
  const lines = [
    '',
    `Inkpad is running at ${publicUrl}`,
    ...(signInToken
      ? [
          `Open it, signed in (once, within ten minutes): ${publicUrl}/app/sign-in/link?token=${signInToken}`,
        ]
      : []),
    `API token: ${token ? `${token} (kept in ${localFile}, not shown again)` : elsewhere}`,
    'Try:',
    `  curl -H "Authorization: Bearer ${token ?? 'TOKEN'}" ${publicUrl}/api/v1/accounts`,
    ...(local?.email
      ? [
          `Sign in: ${publicUrl}/app as ${local.email}, password ${created ? local.password : 'as at the first start'} (in ${localFile})`,
        ]
      : [`Sign in: ${publicUrl}/app`]),
    `Docs: ${publicUrl}/docs`,
    ...(fillsShop || local?.has_demo
      ? []
      : ['Fill a café with a year of stamps: npx inkpad demo:shop (in another terminal).']),
    'Watch it in action: npx inkpad demo (in another terminal). Ctrl-C stops Inkpad.',
    '',
  ];
  return lines.join('\n');
}
