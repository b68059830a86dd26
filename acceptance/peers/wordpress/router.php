<?php
/** The router of PHP's built-in server: WordPress serves every request that is not a file. */
$path = parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH );
if ( $path !== '/' && is_file( $_SERVER['DOCUMENT_ROOT'] . $path ) ) {
	return false;
}
if ( getenv( 'TEST_PERMALINKS' ) === 'none' && str_starts_with( $path, '/wp-json' ) ) {
	http_response_code( 404 );
	header( 'Content-Type: text/html' );
	echo '<h1>Not Found</h1>';
	return true;
}
// Like nginx with `try_files`: WordPress serves its front page for unknown paths.
if ( getenv( 'TEST_PERMALINKS' ) === 'front' && str_starts_with( $path, '/wp-json' ) ) {
	header( 'Content-Type: text/html' );
	echo '<h1>A site for tests</h1>';
	return true;
}
if ( getenv( 'TEST_DROPS_AUTHORIZATION' ) ) {
	unset( $_SERVER['HTTP_AUTHORIZATION'], $_SERVER['PHP_AUTH_USER'], $_SERVER['PHP_AUTH_PW'] );
}
$_SERVER['SCRIPT_NAME'] = '/index.php';
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
