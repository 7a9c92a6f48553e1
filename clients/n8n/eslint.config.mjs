import js from '@eslint/js';
import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import n8nNodesBase from 'eslint-plugin-n8n-nodes-base';
import tseslint from 'typescript-eslint';

/** The rules of n8n's starter for community nodes, without the command line tool that brings them. */
export default tseslint.config(
  { ignores: ['dist', 'node_modules'] },
  {
    files: ['**/*.ts'],
    extends: [
      js.configs.recommended,
      tseslint.configs.recommended,
      n8nCommunityNodesPlugin.configs.recommended,
    ],
    rules: { 'no-console': 'error' },
  },
  { plugins: { 'n8n-nodes-base': n8nNodesBase } },
  {
    files: ['package.json'],
    extends: [n8nCommunityNodesPlugin.configs.recommended],
    rules: {
      ...n8nNodesBase.configs.community.rules,
      // The licence of the whole project.
      'n8n-nodes-base/community-package-json-license-not-default': 'off',
    },
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { extraFileExtensions: ['.json'] },
    },
  },
  {
    files: ['credentials/**/*.ts'],
    rules: {
      ...n8nNodesBase.configs.credentials.rules,
      'n8n-nodes-base/cred-class-field-documentation-url-miscased': 'off',
      'n8n-nodes-base/cred-class-field-type-options-password-missing': 'off',
    },
  },
  {
    files: ['nodes/**/*.ts'],
    rules: {
      ...n8nNodesBase.configs.nodes.rules,
      'n8n-nodes-base/node-class-description-inputs-wrong-regular-node': 'off',
      'n8n-nodes-base/node-class-description-outputs-wrong': 'off',
      'n8n-nodes-base/node-param-type-options-max-value-present': 'off',
    },
  },
);
